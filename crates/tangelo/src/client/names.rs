//! The commands that rename things, change hosts, and delete pools.

use api::HostUpdate;
use control::client::{Server, path_piece};
use control::rest::NewName;

use super::ask::Ask;
use super::{Failure, Shown, chap};
use crate::cli;

/// `kind`: the resource, such as `volumes`.
pub(super) async fn rename(kind: &str, rename: &cli::Rename, server: &Server) -> Result<Shown, Failure> {
    let path = format!("/v1/{kind}/{}/rename", path_piece(&rename.name));
    Ask::post(path, &NewName { name: rename.new_name.clone() }).change(&rename.change, server).await
}

pub(super) async fn pool(pool: &cli::Pool, server: &Server) -> Result<Shown, Failure> {
    match pool {
        cli::Pool::Rename(pool) => rename("pools", pool, server).await,
        cli::Pool::Delete { name, eradicate, change } => {
            let path = format!("/v1/pools/{}?eradicate={eradicate}", path_piece(name));
            Ask::Delete(path).destroy(change, server).await
        }
        other => unreachable!("{other:?} is carried out elsewhere"),
    }
}

pub(super) async fn set_host(set: &cli::HostSet, server: &Server) -> Result<Shown, Failure> {
    let update = HostUpdate {
        add_initiators: set.add_iqn.clone(),
        remove_initiators: set.remove_iqn.clone(),
        chap: chap(&set.chap_user, &set.chap_secret_file)?,
        mutual_chap: chap(&set.mutual_chap_user, &set.mutual_chap_secret_file)?,
        no_chap: set.no_chap,
        no_mutual_chap: set.no_mutual_chap,
    };
    Ask::patch(format!("/v1/hosts/{}", path_piece(&set.name)), &update).change(&set.change, server).await
}
