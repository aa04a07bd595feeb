//! The package of the test `operations`: Helm and kubectl perform an operator's manual steps.
