//! The names of methods and functions that send requests.

/// Methods with a result of the shape of the receiver.
pub const SAME: &[&str] = &[
    "clone",
    "cloned",
    "as_ref",
    "as_deref",
    "as_mut",
    "iter",
    "into_iter",
    "unwrap_or_default",
    "unwrap_or_else",
    "unwrap",
    "expect",
    "ok",
    "err",
    "ok_or_else",
    "context",
    "map_err",
    "borrow",
    "client",
    "under",
    "state",
    "to_owned",
    "take",
    "first",
    "last",
    "next",
    "with_context",
    "store",
    "boxed",
    "or_else",
    "transpose",
    "filter",
    "find",
    "flatten",
    "collect",
    "chain",
    "rev",
    "values",
    "await_",
    "await_ok",
    "min_by_key",
    "max_by_key",
    "copied",
    "drain",
    "into_values",
    "deref",
    "and_then",
    "inspect",
    "skip",
    "as_slice",
    "to_vec",
];

/// Functions with a result of the shape of the first argument.
pub const WRAPPING: &[&str] = &[
    "Some",
    "Ok",
    "Err",
    "Box::new",
    "Arc::new",
    "Arc::clone",
    "Box::pin",
    "Rc::new",
    "from_ref",
];

/// Methods that make an `Api` from the client of a cluster.
pub const MAKING: &[&str] = &["namespaced", "cluster_wide", "all"];

/// Functions of `Api` that make an `Api` from a client.
pub const MAKING_FUNCTIONS: &[&str] = &[
    "namespaced",
    "all",
    "default_namespaced",
    "namespaced_with",
    "all_with",
    "default_namespaced_with",
];

/// The methods of `Api` that send a request: subresource and verb.
pub const METHODS: &[(&str, &str, &str)] = &[
    ("get", "", "get"),
    ("get_opt", "", "get"),
    ("get_metadata", "", "get"),
    ("get_metadata_opt", "", "get"),
    ("list", "", "list"),
    ("list_metadata", "", "list"),
    ("watch", "", "watch"),
    ("watch_metadata", "", "watch"),
    ("create", "", "create"),
    ("delete", "", "delete"),
    ("delete_collection", "", "deletecollection"),
    ("patch", "", "patch"),
    ("patch_metadata", "", "patch"),
    ("replace", "", "update"),
    ("get_status", "/status", "get"),
    ("patch_status", "/status", "patch"),
    ("replace_status", "/status", "update"),
    ("evict", "/eviction", "create"),
    ("logs", "/log", "get"),
];

/// Functions outside of the workspace that list and watch, and those of the workspace that keep the `Api`
/// for a later watch.
pub const WATCHING: &[&str] = &[
    "watcher",
    "metadata_watcher",
    "await_condition",
    "watch_object",
    "owns",
    "watches",
    "Controller::new",
    "SharedWatch::new",
];

/// The function of the workspace that lists in pages by requests that the search cannot read.
pub const LISTING: &[&str] = &["survey"];
