//! Tests of the consumer group state machine: scripted conversations, bytes of records, random inputs.

mod conversations;
mod offsets;
mod random;
mod records;
mod script;
mod stage;
mod statics;
