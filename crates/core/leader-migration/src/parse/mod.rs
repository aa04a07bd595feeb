//! Parses text to a [`LeaderMigrationConfiguration`], strictly (RK-03, RK-10, RK-18).
//!
//! The parser reads the document as a tree and checks the tree afterwards. So the error lists all problems at
//! once, each with the place, in any order of the fields.

mod document;
mod mapping;
#[cfg(test)]
mod tests;

use super::{
    config::{ControllerLeader, LeaderMigrationConfiguration, ResourceLock},
    error::{ConfigError, Problem, ProblemKind},
    table::{KnownNames, ManagerTable},
};
use document::{Content, Node};
use mapping::{Mapping, Position};

const KIND: &str = "LeaderMigrationConfiguration";
const GROUP: &str = "controllermanager.config.k8s.io";

/// Versions of the format. v1 has no `resourceLock`: v1 always uses Leases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1Alpha1,
    V1Beta1,
    V1,
}

impl Version {
    const ALL: [(&str, Self); 3] = [
        ("v1alpha1", Self::V1Alpha1),
        ("v1beta1", Self::V1Beta1),
        ("v1", Self::V1),
    ];

    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::V1Alpha1 | Self::V1Beta1 => &[
                "apiVersion",
                "kind",
                "leaderName",
                "resourceLock",
                "controllerLeaders",
            ],
            Self::V1 => &["apiVersion", "kind", "leaderName", "controllerLeaders"],
        }
    }
}

impl LeaderMigrationConfiguration {
    /// Reads a single YAML or JSON document, of version v1alpha1, v1beta1 or v1. `origin` names the text in
    /// messages: the path of the file. `table` lists the managers, aliases and locks of all managers that may
    /// share a lock.
    ///
    /// # Errors
    /// Names every invalid place, with the line and the remedy. Stricter than Kubernetes: a file by which a
    /// controller would silently run nowhere or twice is an error (RK-03, RK-34).
    pub fn parse(text: &str, origin: &str, table: &ManagerTable) -> Result<Self, ConfigError> {
        let names = KnownNames {
            table: *table,
            own: None,
        };
        read(text, origin, &names, None)
    }

    /// The same for a manager with these names and this main lock; the migration lock must have a different
    /// name.
    pub(super) fn parse_beside(
        main_lock: &str,
        names: &KnownNames,
        text: &str,
        origin: &str,
    ) -> Result<Self, ConfigError> {
        read(text, origin, names, Some(main_lock))
    }
}

/// `main_lock` is the name that the migration lock must not have.
fn read(
    text: &str,
    origin: &str,
    names: &KnownNames,
    main_lock: Option<&str>,
) -> Result<LeaderMigrationConfiguration, ConfigError> {
    let invalid = |problems| ConfigError::Invalid {
        origin: origin.to_owned(),
        problems,
    };
    let document = document::read(text).map_err(|problem| invalid(vec![problem]))?;
    let mut reader = Reader {
        names,
        main_lock,
        problems: Vec::new(),
    };
    match reader.configuration(&document) {
        Some(configuration) if reader.problems.is_empty() => Ok(configuration),
        _ => Err(invalid(reader.problems)),
    }
}

/// Checks a tree and collects the problems. A method returns `None` only after it has recorded a problem.
struct Reader<'t> {
    names: &'t KnownNames,
    main_lock: Option<&'t str>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn configuration(&mut self, document: &Node) -> Option<LeaderMigrationConfiguration> {
        let position = Position::of_document(document);
        let Content::Mapping(fields) = &document.value else {
            let what = format!("is {}, not a mapping with kind: {KIND}", document.value.shape());
            self.wrong(position, ProblemKind::Format, what);
            return None;
        };
        let fields = &Mapping { position, fields };
        let kind = self.kind(fields);
        let version = self.version(fields);
        // For a different kind or version every other message would be a guess.
        let (Some(()), Some(version)) = (kind, version) else {
            return None;
        };
        self.unknown_fields(fields, version.fields(), Some(version));
        let leader_name = self.leader_name(fields);
        let resource_lock = self.resource_lock(fields, version);
        let controller_leaders = self.controller_leaders(fields);
        Some(LeaderMigrationConfiguration {
            leader_name: leader_name?,
            resource_lock: resource_lock?,
            controller_leaders: controller_leaders?,
        })
    }

    fn kind(&mut self, fields: &Mapping<'_>) -> Option<()> {
        let kind = self.text(fields, "kind", &format!("write {KIND}"))?;
        if kind != KIND {
            let position = fields.field_position("kind");
            let what = format!("is {kind:?}: this file must be of kind {KIND}");
            self.wrong(position, ProblemKind::Format, what);
            return None;
        }
        Some(())
    }

    fn version(&mut self, fields: &Mapping<'_>) -> Option<Version> {
        let advice = format!("write {GROUP}/v1 (or /v1beta1, /v1alpha1)");
        let written = self.text(fields, "apiVersion", &advice)?;
        let found = written
            .strip_prefix(GROUP)
            .and_then(|rest| rest.strip_prefix('/'));
        let version = Version::ALL.iter().find(|(name, _)| Some(*name) == found);
        if version.is_none() {
            let position = fields.field_position("apiVersion");
            let what = format!("{written:?} is not known: {advice}");
            self.wrong(position, ProblemKind::Format, what);
        }
        version.map(|(_, version)| *version)
    }

    fn leader_name(&mut self, fields: &Mapping<'_>) -> Option<String> {
        let advice = "give the migration lock a name; all managers that share it need the same one";
        let name = self.text(fields, "leaderName", advice)?;
        let position = fields.field_position("leaderName");
        if !is_object_name(name) {
            let what = format!(
                "{name:?} cannot be the name of a Lease: use lower case letters, digits, '-' and '.', at most 253, \
                 and begin and end with a letter or digit"
            );
            self.wrong(position, ProblemKind::Lock, what);
            return None;
        }
        if self.main_lock == Some(name) {
            self.wrong(position, ProblemKind::Lock, own_main_lock(name));
            return None;
        }
        if let Some(owner) = self.names.table.lock_owner(name) {
            let what = format!(
                "{name:?} is the name of {owner}'s main lock: the migration lock needs a name of its own, \
                 for example {name}-migration"
            );
            self.wrong(position, ProblemKind::Lock, what);
            return None;
        }
        Some(name.to_owned())
    }

    fn resource_lock(&mut self, fields: &Mapping<'_>, version: Version) -> Option<ResourceLock> {
        let written = match fields.get("resourceLock") {
            // In v1 the field is unknown; `unknown_fields` has recorded that.
            _ if version == Version::V1 => return Some(ResourceLock::Leases),
            None | Some(Content::Null) => return Some(ResourceLock::Leases),
            Some(Content::Text(written)) => match written.as_str() {
                "" | "leases" => return Some(ResourceLock::Leases),
                other => format!("{other:?}"),
            },
            Some(other) => other.shape().to_owned(),
        };
        let why = match written.trim_matches('"') {
            "endpoints" => "cannot be used: Kubernetes no longer locks on Endpoints",
            "endpointsleases" | "configmapsleases" | "configmaps" => "is not allowed (KEP-2436)",
            _ => "is not known",
        };
        let what = format!("{written} {why}: write leases, or leave the field out");
        self.wrong(fields.field_position("resourceLock"), ProblemKind::Lock, what);
        None
    }

    fn controller_leaders(&mut self, fields: &Mapping<'_>) -> Option<Vec<ControllerLeader>> {
        let position = fields.field_position("controllerLeaders");
        let list = match fields.get("controllerLeaders") {
            Some(Content::List(list)) if !list.is_empty() => list,
            None | Some(Content::Null | Content::List(_)) => {
                let what = "is missing or empty: list at least one controller with name and component, or leave \
                            --enable-leader-migration out";
                self.wrong(position, ProblemKind::Value, what.to_owned());
                return None;
            }
            Some(other) => {
                let what = format!(
                    "is {}, not a list of entries with name and component",
                    other.shape()
                );
                self.wrong(position, ProblemKind::Value, what);
                return None;
            }
        };
        let mut leaders: Vec<(usize, ControllerLeader)> = Vec::new();
        for (index, entry) in list.iter().enumerate() {
            let position = position.element(index, entry);
            let Content::Mapping(fields) = &entry.value else {
                let what = format!("is {}, not an entry with name and component", entry.value.shape());
                self.wrong(position, ProblemKind::Value, what);
                continue;
            };
            let fields = &Mapping { position, fields };
            let Some(leader) = self.controller_leader(fields) else {
                continue;
            };
            let names = self.names;
            let name = names.present_name(&leader.name);
            if let Some((first, other)) = leaders.iter().find(|(_, l)| names.present_name(&l.name) == name) {
                let what = duplicate(&leader.name, *first, other);
                self.wrong(fields.field_position("name"), ProblemKind::Duplicate, what);
            }
            leaders.push((index, leader));
        }
        Some(leaders.into_iter().map(|(_, leader)| leader).collect())
    }

    fn controller_leader(&mut self, fields: &Mapping<'_>) -> Option<ControllerLeader> {
        self.unknown_fields(fields, &["name", "component"], None);
        let name = self.text(fields, "name", "name the controller, for example backup-bucket");
        let advice = r#"name the manager that may run it, or write "*" for any"#;
        let component = self.text(fields, "component", advice);
        Some(ControllerLeader {
            name: name?.to_owned(),
            component: component?.to_owned(),
            line: fields.position.line,
        })
    }

    /// A required field with text.
    fn text<'d>(&mut self, fields: &Mapping<'d>, name: &str, advice: &str) -> Option<&'d str> {
        let problem = match fields.get(name) {
            Some(Content::Text(text)) if text.is_empty() => format!("is empty: {advice}"),
            Some(Content::Text(text)) if text.contains(|c: char| c.is_whitespace() || c.is_control()) => {
                format!("{text:?} has white space in it: {advice}")
            }
            Some(Content::Text(text)) => return Some(text),
            None => format!("is missing: {advice}"),
            Some(Content::Null) => format!("is empty: {advice}"),
            Some(scalar @ (Content::Bool | Content::Number)) => {
                format!("is {}, not text: put it in quotes, or {advice}", scalar.shape())
            }
            Some(other) => format!("is {}, not text: {advice}", other.shape()),
        };
        self.wrong(fields.field_position(name), ProblemKind::Value, problem);
        None
    }

    fn unknown_fields(&mut self, fields: &Mapping<'_>, known: &[&str], version: Option<Version>) {
        for (key, _) in fields.fields {
            let name = &key.value;
            if known.contains(&name.as_str()) {
                continue;
            }
            let what = if name == "resourceLock" && version == Some(Version::V1) {
                "is not a field of v1, which always uses leases: remove it".to_owned()
            } else if let Some(meant) = known.iter().find(|field| field.eq_ignore_ascii_case(name)) {
                format!("is not a known field: write {meant}")
            } else {
                format!("is not a known field: remove it (known: {})", known.join(", "))
            };
            self.wrong(fields.field_position(name), ProblemKind::UnknownField, what);
        }
    }

    fn wrong(&mut self, position: Position, kind: ProblemKind, what: String) {
        self.problems.push(Problem {
            kind,
            line: position.line,
            field: position.field,
            what,
        });
    }
}

/// `leaderName` and the main lock would be the same lock: the manager would wait for itself.
fn own_main_lock(name: &str) -> String {
    format!(
        "{name:?} is also this manager's main lock (--leader-elect-resource-name): give the two different names"
    )
}

fn duplicate(name: &str, first: usize, other: &ControllerLeader) -> String {
    let by = if name == other.name {
        String::new()
    } else {
        format!(" by its other name {:?}", other.name)
    };
    let line = other
        .line
        .map(|line| format!(", line {line}"))
        .unwrap_or_default();
    format!("{name:?} is listed already{by} (controllerLeaders[{first}]{line}): keep one of the two")
}

/// The rule for names of Leases (a DNS subdomain).
fn is_object_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |label: &str| {
        label.starts_with(letter) && label.ends_with(letter) && label.chars().all(|c| letter(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}
