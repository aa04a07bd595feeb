//! The three clusters with their neighbours, as created by `hack/landscape.sh up NAME`.

use std::{collections::BTreeMap, env, fs, net::SocketAddr, path::PathBuf};

use anyhow::{Context, Result};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A landscape that is up.
pub struct Landscape {
    /// The name: `demo` or `e2e`.
    pub name: String,
    variables: BTreeMap<String, String>,
    /// A client of the garden with an administrator's rights.
    pub garden: Client,
    /// Clients of the seeds `seed-a` and `seed-b` with an administrator's rights.
    pub seeds: BTreeMap<&'static str, Client>,
    /// The DNS server.
    pub dns: SocketAddr,
}

impl Landscape {
    /// Reads the files that the scripts have written.
    pub async fn open(name: &str) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cache = env::var("REPOT_CACHE").context("REPOT_CACHE is not set; run this through make")?;
        let file = PathBuf::from(cache)
            .join("landscape")
            .join(name)
            .join("landscape.env");
        let text = fs::read_to_string(&file)
            .with_context(|| format!("landscape {name} is not up; run: hack/landscape.sh up {name}"))?;
        let variables: BTreeMap<String, String> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let variable = |key: &str| {
            variables
                .get(key)
                .cloned()
                .with_context(|| format!("{key} is not in {}", file.display()))
        };
        let garden = client(&variable("GARDEN_KUBECONFIG")?).await?;
        let mut seeds = BTreeMap::new();
        for (seed, key) in [("seed-a", "SEED_A_KUBECONFIG"), ("seed-b", "SEED_B_KUBECONFIG")] {
            seeds.insert(seed, client(&variable(key)?).await?);
        }
        let dns = variable("DNS_SERVER")?
            .parse()
            .context("DNS_SERVER is no address")?;
        Ok(Self {
            name: name.to_owned(),
            garden,
            seeds,
            dns,
            variables,
        })
    }

    /// A variable of the landscape, e.g. `S3_DATA`.
    pub fn variable(&self, key: &str) -> Result<&str> {
        self.variables
            .get(key)
            .map(String::as_str)
            .with_context(|| format!("the landscape does not say {key}"))
    }

    /// A client of the cluster that simulates the cloud, with an administrator's rights.
    pub async fn cloud(&self) -> Result<Client> {
        client(self.variable("INFRA_KUBECONFIG")?).await
    }

    /// The client of a seed.
    pub fn seed(&self, name: &str) -> Result<&Client> {
        self.seeds
            .get(name)
            .with_context(|| format!("no seed is called {name}"))
    }
}

async fn client(kubeconfig: &str) -> Result<Client> {
    let config = Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {kubeconfig}"))?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
