//go:build tools

// Package tools pins oras, which writes OCI layouts and copies them to registries.
package tools

import _ "oras.land/oras/cmd/oras"
