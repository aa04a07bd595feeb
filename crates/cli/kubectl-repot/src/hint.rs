//! Commands that messages name as the next step. A user copies such a command, so the command names the
//! namespace of the shoot.

/// The command line in code marks, such as `kubectl repot cancel demo -n garden-dev`. `command`: the words
/// between the name of the plugin and the namespace. Without a namespace, the flag is left out.
#[must_use]
pub fn command_line(command: &str, namespace: Option<&str>) -> String {
    match namespace.filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("`kubectl repot {command} -n {namespace}`"),
        None => format!("`kubectl repot {command}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_namespace_of_the_shoot() {
        let full = command_line("cancel demo", Some("garden-dev"));
        assert_eq!(full, "`kubectl repot cancel demo -n garden-dev`");
        for none in [None, Some("")] {
            assert_eq!(command_line("cancel demo", none), "`kubectl repot cancel demo`");
        }
    }
}
