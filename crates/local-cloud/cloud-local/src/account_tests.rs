#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;

fn kubeconfig(token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://192.0.2.1:6443'}}}}]\nusers: [{{name: u, user: {{token: {token}}}}}]\n"
    )
}

#[tokio::test]
async fn renewed_credentials_are_taken_without_a_restart() {
    let _ = runtime::process::Process::new("test"); // sets the TLS provider
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let opened = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let wrap: Wrap = {
        let opened = Arc::clone(&opened);
        Arc::new(move |cloud| {
            opened.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            cloud.client(&runtime::client::Permit::sole("a test"))
        })
    };
    let opened = || opened.load(std::sync::atomic::Ordering::SeqCst);
    let account = Account::new(
        Source::Folder(folder.path().to_owned()),
        FieldManager("test"),
        wrap,
    );
    let missing = account.open().await.map(|_| ()).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");

    write("namespace", "account");
    write("kubeconfig", &kubeconfig("one"));
    account.open().await.unwrap();
    account.open().await.unwrap();
    assert_eq!(opened(), 1, "the connection is kept");
    write("kubeconfig", &kubeconfig("two"));
    account.open().await.unwrap();
    assert_eq!(opened(), 2, "renewed credentials make a new connection");
}
