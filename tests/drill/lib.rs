//! The package of the test `drill`: each flow of the gardenlet, failed before, failed after and repeated at
//! every task.
