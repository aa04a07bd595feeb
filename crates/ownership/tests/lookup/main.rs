//! The owner check against real servers: knot, and servers that are hostile, broken or slow, over real
//! sockets.

#![allow(clippy::unwrap_used, clippy::panic)]

mod authority;
mod every_server;
mod hostile;
mod server;
mod world;
