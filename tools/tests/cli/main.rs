//! The command line as a user meets it: the built binary, its output and its exit codes.

mod admin;
mod config;
mod help;
mod http;
mod process;
mod quickstart;
mod serve;
