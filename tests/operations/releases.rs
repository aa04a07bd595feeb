//! Scripts of a release fail with a sentence if a program or a registry does not answer, and change nothing
//! then. The programs around the scripts are simulated.

use testkit::files_below;

use crate::programs::{Desk, ProgramOutput, root};

/// Pushes a release with an image. The simulated oras prints `$1` and ends with the status `$2` as long as
/// the image is not pushed.
const PUSH: &str = r#"
    mkdir release && cd release
    printf 'suite\trepot/tunnel\tv0.1.0\tsha256:%064d\timages/tunnel.tar\n' 0 >artifacts.tsv
    sha256sum artifacts.tsv >SHA256SUMS
    cp "$0/hack/release/push.sh" .
    printf '%s\n' '#!/bin/sh' \
      'if [ "$1" = cp ]; then touch pushed; exit; fi' \
      'if [ -e pushed ]; then printf "sha256:%064d\n" 0; exit; fi' \
      'echo "$ANSWER"; exit "$STATUS"' >oras
    chmod +x oras
    ANSWER=$1 STATUS=$2 ORAS=$PWD/oras ./push.sh registry.example.org/team/"#;

/// The output of the script, and whether the image was written.
async fn push(answer: &str, status: &str) -> (ProgramOutput, bool) {
    let desk = Desk::new().unwrap();
    let root = root().canonicalize().unwrap();
    let args = ["-euc", PUSH, root.to_str().unwrap(), answer, status];
    let said = desk.run("bash", &args).await.unwrap();
    let pushed = desk.run("test", &["-e", "release/pushed"]).await.unwrap();
    (said, pushed.success)
}

/// After a timeout or a refused login, the registry may have the tag with a different digest.
#[tokio::test]
async fn a_tag_is_written_only_after_the_registry_has_reported_that_it_does_not_exist() {
    for answer in [
        "Error: failed to resolve digest: Head \"https://registry.example.org/v2/\": dial tcp: i/o timeout",
        "Error response from registry: failed to resolve digest: response status code 503: Service Unavailable",
        "Error response from registry: recognizable error message not found: response status code 401",
    ] {
        let (said, pushed) = push(answer, "1").await;
        let reason = "did not report whether registry.example.org/team/repot/tunnel:v0.1.0 exists";
        assert!(!said.success && !pushed, "{answer}: {said:?}");
        assert!(
            said.err.contains(reason) && said.err.contains(answer),
            "{answer}: {}",
            said.err
        );
    }
    let absent = "Error response from registry: failed to resolve digest: registry.example.org/team/repot/tunnel:v0.1.0: not found";
    let (said, pushed) = push(absent, "1").await;
    assert!(said.success && pushed, "{said:?}");
}

#[tokio::test]
async fn a_tag_with_a_different_digest_is_never_written() {
    let digest = format!("sha256:{}", "1".repeat(64));
    let (said, pushed) = push(&digest, "0").await;
    assert!(!said.success && !pushed, "{said:?}");
    assert!(
        said.err.contains("a tag of a release never changes"),
        "{}",
        said.err
    );
}

/// Lists the dependencies of an image with a single program. `$1`, `$2` and `$3` are the simulated go,
/// rust-audit-info and jq.
const LIST: &str = r#"
    WORK=$PWD REPOT_BIN=$PWD/bin
    mkdir -p root bin
    cp /bin/sh root/program
    printf '%s\n' '#!/bin/sh' "$2" >bin/rust-audit-info
    chmod +x root/program bin/rust-audit-info
    cd "$0"
    . hack/progress.sh; . hack/release/sbom.sh
    eval "go() { $1; }"
    eval "jq() { $3; }"
    program_parts "$WORK/root""#;

/// An incomplete bill of materials would pass for a complete one.
#[tokio::test]
async fn a_program_without_a_complete_list_of_dependencies_ends_the_release() {
    let root = root().canonicalize().unwrap();
    let other = "echo not a Go executable >&2; return 1";
    let go = r"printf '\tdep\tk8s.io/api\tv0.34.4\n'";
    for (go, rust, jq, reason) in [
        (
            other,
            "echo no audit data >&2; exit 1",
            "cat",
            "has no list of its dependencies",
        ),
        ("true", "exit 1", "cat", "has an empty list of its dependencies"),
        (go, "echo tokio", "cat; return 1", "the modules in"),
        (other, "echo tokio", "cat; return 1", "the crates in"),
        (go, "exit 1", "cat", ""),
        (other, "echo tokio", "cat", ""),
    ] {
        let desk = Desk::new().unwrap();
        let args = [
            "-euo",
            "pipefail",
            "-c",
            LIST,
            root.to_str().unwrap(),
            go,
            rust,
            jq,
        ];
        let said = desk.run("bash", &args).await.unwrap();
        if reason.is_empty() {
            let expected = if go == other {
                "tokio\n"
            } else {
                "k8s.io/api\tv0.34.4\n"
            };
            assert!(said.success, "{said:?}");
            assert_eq!(said.out, expected, "{said:?}");
        } else {
            assert!(!said.success && said.err.contains(reason), "{reason}: {said:?}");
        }
    }
}

/// Pulls a demonstration. The simulated engine has all images except `$1`.
const PULL: &str = r#"
    mkdir -p repository bin
    cp -r "$0/hack" "$0/Cargo.toml" repository/
    printf '%s\n' '#!/bin/sh' >repository/hack/docker.sh
    cat >bin/docker <<'END'
#!/bin/sh
case $1 in
  pull) case $3 in *"/demo/$MISSING:"*) exit 1 ;; esac ;;
  create) echo container ;;
  cp)
    mkdir -p "$3/bin" "$3/stamps"
    for name in kind kubectl helm kubeadm etcd; do
      echo "$name" >"$3/bin/$name"
      echo v1.2.3 >"$3/stamps/$name"
    done
    echo commit >"$3/commit"
    printf '%s\n' 'repot/gardenlet:dev gardenlet' 'repot/tunnel:dev tunnel' >"$3/images" ;;
  tag) echo "$2 $3" >>"$TAGS" ;;
esac
END
    chmod +x bin/docker
    export PATH=$PWD/bin:$PATH REPOT_CACHE=$PWD/cache REPOT_REGISTRY=registry.example.org TAGS=$PWD/tags
    MISSING=$1 REPOT_VERSION=v1.0.0 repository/hack/demo-registry.sh pull registry.example.org/
    sort tags
    cat cache/bin/kind cache/bin/.stamps/etcd cache/demo/node"#;

async fn pull(missing: &str) -> ProgramOutput {
    let desk = Desk::new().unwrap();
    let root = root().canonicalize().unwrap();
    let args = ["-euc", PULL, root.to_str().unwrap(), missing];
    desk.run("bash", &args).await.unwrap()
}

/// A demonstration from a registry needs neither Rust nor Go.
#[tokio::test]
async fn a_demonstration_is_pulled_completely_or_refused() {
    let said = pull("nothing").await;
    assert!(said.success, "{said:?}");
    let expected = "registry.example.org/demo/gardenlet:v1.0.0 repot/gardenlet:dev\n\
                    registry.example.org/demo/tunnel:v1.0.0 repot/tunnel:dev\n\
                    kind\nv1.2.3\nregistry.example.org/demo/node:v1.0.0\n";
    assert_eq!(said.out, expected, "{}", said.err);
    for (missing, sentence) in [
        ("files", "the registry has no demonstration v1.0.0"),
        ("tunnel", "tunnel:v1.0.0 could not be pulled"),
        ("node", "node:v1.0.0 could not be pulled"),
    ] {
        let said = pull(missing).await;
        assert!(!said.success, "{missing}: {said:?}");
        assert!(said.err.contains(sentence), "{missing}: {}", said.err);
        // Logs of CI are public.
        assert!(
            !said.err.contains("registry.example.org"),
            "{missing}: {}",
            said.err
        );
    }
}

/// Runs the script `$1` with a registry. The first commands of a script fail.
const WITH_REGISTRY: &str = r#"
    mkdir repository
    cp -r "$0/hack" "$0/Cargo.toml" repository/
    for name in packages tools docker previous-release; do
      printf '%s\n' '#!/bin/sh' 'exit 9' >"repository/hack/$name.sh"
    done
    export REPOT_CACHE=$PWD/cache REPOT_REGISTRY=registry.example.org
    "repository/hack/$1.sh""#;

/// With a registry, hack/env.sh looks for no compilers.
#[tokio::test]
async fn scripts_that_compile_refuse_the_registry_of_the_demonstration() {
    let root = root().canonicalize().unwrap();
    for script in ["check", "unit", "test", "images"] {
        let desk = Desk::new().unwrap();
        let args = ["-euc", WITH_REGISTRY, root.to_str().unwrap(), script];
        let said = desk.run("bash", &args).await.unwrap();
        assert!(!said.success, "{script}: {said:?}");
        let refusal = "REPOT_REGISTRY is for make demo and make demo-down alone";
        assert!(said.err.contains(refusal), "{script}: {}", said.err);
    }
}

/// Packs the pages of a release into folder `$1`.
const PACK: &str = r#"
    OUT=$1 VERSION=v0.2.0
    cd "$0"
    . hack/progress.sh; . hack/release/pages.sh
    pages"#;

/// The relative destinations of the links of a page, without fragments.
fn destinations(text: &str) -> Vec<&str> {
    // Each second part between back quotes is code.
    let prose = text.lines().flat_map(|line| line.split('`').step_by(2));
    let links = prose.flat_map(|part| part.split("](").skip(1));
    let paths = links.filter_map(|rest| rest.split([')', '#', ' ']).next());
    paths
        .filter(|path| !path.is_empty() && !path.contains("://"))
        .collect()
}

/// A reader of a release has no repository: a link out of the packed files ends nowhere.
#[tokio::test]
async fn each_link_of_the_packed_pages_has_a_file_in_the_release() {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path().canonicalize().unwrap();
    let root = root().canonicalize().unwrap();
    let desk = Desk::new().unwrap();
    let args = [
        "-euo",
        "pipefail",
        "-c",
        PACK,
        root.to_str().unwrap(),
        release.to_str().unwrap(),
    ];
    let said = desk.run("bash", &args).await.unwrap();
    said.or_fail("packing").unwrap();
    let (mut count, mut dead) = (0, Vec::new());
    for page in files_below(&release.join("docs"), "md").unwrap() {
        let text = std::fs::read_to_string(&page).unwrap();
        for destination in destinations(&text) {
            count += 1;
            let file = page.parent().unwrap().join(destination);
            let found = file.canonicalize().is_ok_and(|file| file.starts_with(&release));
            if !found {
                dead.push(format!("{}: {destination}", page.display()));
            }
        }
    }
    assert!(count > 300, "only {count} links were found");
    assert!(dead.is_empty(), "{dead:#?}");
    let install = std::fs::read_to_string(release.join("docs/operate/install-release.md")).unwrap();
    assert!(install.contains("version=0.2.0\n"), "{install}");
    let readme = std::fs::read_to_string(release.join("README.md")).unwrap();
    assert!(readme.contains("](docs/operate/install-release.md)"), "{readme}");
}

#[test]
fn destinations_of_links_have_no_fragment() {
    let text = "`[a-z](b)` [`a`](b.md#c) [d](../e.md), [f](#g) and [h](https://example.org/i.md)";
    assert_eq!(destinations(text), ["b.md", "../e.md"]);
}
