//! Target and initiator, back to back and against scripts.

mod harness;

mod authentication;
mod back_to_back;
mod commands;
mod discovery;
mod flood;
mod keepalive;
mod login;
mod malformed;
mod task_management;
mod write_data;
