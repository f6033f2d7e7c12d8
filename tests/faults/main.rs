//! What an operator or a broken disk may do to a node: wrong configuration, a directory that is taken, cannot be
//! written or is damaged. The node says what is wrong and where, and never cuts off what it cannot read.

mod damage;
mod journal;
mod start;
