# Sourced by the scripts that make images: the crates of each cluster, and the programs that an image has beside its own.
# shellcheck shell=bash disable=SC2034 # used where it is sourced
GARDEN_CRATES="garden-controller-manager"
# The last ones are for the control planes of shoots in the seed: provider-local deploys them.
SEED_CRATES="gardenlet etcd-druid etcd-backup-restore resource-manager provider-local cloud-controller-manager-local machine-controller-manager-local tunnel"
# Images of providers that the landscapes do not run: built and loaded into seeds where they are named.
OTHER_CRATES="provider-aws cloud-controller-manager-aws machine-controller-manager-aws"
# What runs on the machines of shoots: instances of the local cloud cannot pull. The tunnel has a side in each.
MACHINE_CRATES="network-local tunnel"
# What runs on the hosts of the local cloud.
CLOUD_CRATES="cloud-local-agent"

# programs_beside CRATE: programs of $REPOT_BIN that the image of CRATE has in /usr/local/bin.
programs_beside() {
  case $1 in
    etcd-backup-restore) echo etcd etcdutl ;;
    # The program that it starts.
    cloud-controller-manager-aws) echo aws-cloud-controller-manager ;;
    # The template engine for charts of extensions.
    gardenlet) echo helm ;;
  esac
}
