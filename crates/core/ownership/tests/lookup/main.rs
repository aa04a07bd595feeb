//! The owner check against real servers: knot, and hostile, broken or slow servers, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic)]

mod authority;
mod every_server;
mod hostile;
mod server;
mod world;
