//go:build tools

// Package tools names the maker of PersistentVolumes. It stands apart because it and etcd spell the import path of their
// logger differently, which one package may not do.
package tools

import _ "github.com/rancher/local-path-provisioner"
