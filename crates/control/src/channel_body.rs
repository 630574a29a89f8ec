//! The body of an HTTP answer that is produced while it is sent: pieces from a channel. An error ends it early.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc;

pub(crate) struct ChannelBody<E>(pub(crate) mpsc::Receiver<Result<Bytes, E>>);

impl<E> hyper::body::Body for ChannelBody<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
