//! Only a place for the test `operations`: what an operator does by hand is done here by Helm and kubectl
//! themselves.
