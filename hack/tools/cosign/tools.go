//go:build tools

// Package tools pins cosign, which signs a release with the key of the releaser.
package tools

import _ "github.com/sigstore/cosign/v2/cmd/cosign"
