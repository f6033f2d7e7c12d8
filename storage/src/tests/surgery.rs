//! Torn tails, corrupt middles, stale files, damaged derived files, made by editing bytes.
