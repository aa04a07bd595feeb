//! Kubernetes' own cloud-controller-manager for AWS beside a shoot's control plane, under the permit of the
//! seed that owns the shoot (I3, R17-60). The program is built from the Go module `k8s.io/cloud-provider-aws`
//! and has no owner checks. So this process starts the program when the permit begins, and kills the program
//! when the permit ends.
//!
//! After a suspended process wakes up, the child process wakes up as well. Hence the program's connections
//! leave through a [`gate`]. The gate checks the permit before each write.
//!
//! | file | content |
//! |---|---|
//! | `program` | the child process: credentials, environment, end |
//! | `gate` | the HTTP proxy on loopback between the child process, EC2 and the shoot's API |

pub mod gate;
pub mod program;
