//! Kubernetes' own cloud-controller-manager for AWS beside a shoot's control plane, under the permit of the
//! seed that owns the shoot (I3, R17-60). The program is built from the Go module `k8s.io/cloud-provider-aws`
//! and knows no owner checks, so this process starts the program when the permit begins and kills the program
//! when the permit ends.
//!
//! A process that was stopped finds its child running when both wake up. Hence the program's connections
//! leave through a [`gate`], which checks the permit before each write.
//!
//! | file | content |
//! |---|---|
//! | `program` | the child process: its credentials, its environment, its end |
//! | `gate` | the HTTP proxy on loopback through which the child reaches EC2 and the shoot's API |

pub mod gate;
pub mod program;
