//! What an agent says of itself (`action=metadata`): the parameters that it takes, and what it can do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use roxmltree::{Document, Node};

/// What is given by this crate, or makes an agent do something else than it is asked for.
const OURS: [&str; 5] = ["action", "option", "help", "version", "nodename"];

#[derive(Clone, PartialEq, Eq, Debug)]
struct Parameter {
    is_required: bool,
    has_default: bool,
    /// An earlier name of this one.
    obsoletes: Option<String>,
    is_deprecated: bool,
}

/// See the header of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    parameters: BTreeMap<String, Parameter>,
    actions: BTreeSet<String>,
}

/// A parameter with which an agent cannot work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParameterFault {
    pub name: String,
    pub why: String,
}

impl fmt::Display for ParameterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.why)
    }
}

fn children<'a>(root: Node<'a, 'a>, list: &'a str, each: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    let lists = root.children().filter(move |node| node.has_tag_name(list));
    lists.flat_map(|node| node.children()).filter(move |node| node.has_tag_name(each))
}

impl Metadata {
    /// Reads what an agent has printed.
    pub fn parse(text: &str) -> Result<Metadata, String> {
        let document = Document::parse(text).map_err(|error| format!("its metadata is no XML: {error}"))?;
        let root = document.root_element();
        if !root.has_tag_name("resource-agent") {
            return Err("its metadata is not that of an agent".to_owned());
        }
        let mut parameters = BTreeMap::new();
        for node in children(root, "parameters", "parameter") {
            let Some(name) = node.attribute("name") else { continue };
            let is = |attribute| node.attribute(attribute) == Some("1");
            let content = node.children().find(|child| child.has_tag_name("content"));
            let parameter = Parameter {
                is_required: is("required"),
                has_default: content.is_some_and(|content| content.has_attribute("default")),
                obsoletes: node.attribute("obsoletes").map(str::to_owned),
                is_deprecated: is("deprecated"),
            };
            parameters.insert(name.to_owned(), parameter);
        }
        let action = |node: Node<'_, '_>| node.attribute("name").map(str::to_owned);
        let actions: BTreeSet<String> = children(root, "actions", "action").filter_map(action).collect();
        if actions.is_empty() {
            return Err("its metadata names no action".to_owned());
        }
        Ok(Metadata { parameters, actions })
    }

    pub fn can(&self, action: &str) -> bool {
        self.actions.contains(action)
    }

    /// The first parameter that the agent would not understand, or that it needs and does not get. Agents ignore what they do not know,
    /// and then say "off" of something else.
    pub fn fault<'a>(&self, given: impl Iterator<Item = &'a str> + Clone) -> Option<ParameterFault> {
        let fault = |name: &str, why: String| Some(ParameterFault { name: name.to_owned(), why });
        for name in given.clone() {
            if OURS.contains(&name) {
                return fault(name, "this is not to be given: remove it".to_owned());
            }
            if !self.parameters.contains_key(name) {
                let known: Vec<&str> = self.usual().collect();
                return fault(name, format!("the agent has no such parameter; it has {}", known.join(", ")));
            }
        }
        let is_given = |name: &str| given.clone().any(|other| other == name);
        for (name, parameter) in &self.parameters {
            let earlier = parameter.obsoletes.as_deref();
            let is_met = is_given(name)
                || earlier.is_some_and(is_given)
                || parameter.has_default
                || parameter.is_deprecated
                || OURS.contains(&name.as_str());
            if parameter.is_required && !is_met {
                return fault(name, "the agent needs this parameter: add it".to_owned());
            }
        }
        None
    }

    /// The parameters that somebody would give.
    fn usual(&self) -> impl Iterator<Item = &str> {
        let usual = |(name, parameter): &(&String, &Parameter)| {
            !parameter.is_deprecated && !OURS.contains(&name.as_str())
        };
        self.parameters.iter().filter(usual).map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const EXAMPLE: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_x" shortdesc="x" >
<parameters>
	<parameter name="action" unique="0" required="1"><content type="string" default="reboot"  /></parameter>
	<parameter name="ip" unique="0" required="1" obsoletes="ipaddr"><content type="string"  /></parameter>
	<parameter name="ipaddr" unique="0" required="1" deprecated="1"><content type="string"  /></parameter>
	<parameter name="port" unique="0" required="1"><content type="integer" default="623"  /></parameter>
	<parameter name="password" unique="0" required="0"><content type="string"  /></parameter>
</parameters>
<actions><action name="on" automatic="0"/><action name="off" /><action name="status" /></actions>
</resource-agent>"#;

    #[test]
    fn unknown_and_missing_parameters_are_found() {
        let metadata = Metadata::parse(EXAMPLE).unwrap();
        let fault = |given: &[&str]| metadata.fault(given.iter().copied()).map(|fault| fault.to_string());
        assert_eq!(fault(&["ip", "password"]), None);
        assert_eq!(fault(&["ipaddr"]), None, "an earlier name will do");
        assert_eq!(fault(&["password"]).unwrap(), "ip: the agent needs this parameter: add it");
        let unknown = fault(&["ip", "plug"]).unwrap();
        assert_eq!(unknown, "plug: the agent has no such parameter; it has ip, password, port");
        assert!(fault(&["ip", "action"]).unwrap().contains("not to be given"));
        assert!(metadata.can("status") && !metadata.can("reboot"));
    }

    #[test]
    fn what_is_no_metadata_is_refused() {
        for text in ["", "usage: ...", "<a/>", "<resource-agent><actions/></resource-agent>"] {
            assert!(Metadata::parse(text).is_err(), "{text}");
        }
    }
}
