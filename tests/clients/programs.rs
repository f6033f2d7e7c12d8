//! The clients that are driven by a program in their own language: `PROGRAM BOOTSTRAP PREFIX`, which ends with 0 only
//! if every answer was right.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use millrace_tests::broker::{Options, Target, unique};
use millrace_tests::process::run;
use millrace_tests::suite::{Cost, Outcome};
use millrace_tests::{foreign, suite};

const LIMIT: Duration = Duration::from_secs(240);

fn check(name: &str, mut program: Command) -> Result<()> {
    let target = Target::start(Options::default())?;
    program.arg(target.bootstrap()).arg(unique(name));
    run(&mut program, name, LIMIT)?;
    Ok(())
}

#[test]
fn java_kafka_clients_4_4() -> Outcome {
    suite::run(Cost::Heavy, || check("java-4.4", foreign::Java::with_clients("4.4.0")?.client()))
}

#[test]
fn java_kafka_clients_2_8() -> Outcome {
    suite::run(Cost::Heavy, || check("java-2.8", foreign::Java::with_clients("2.8.2")?.client()))
}

#[test]
fn python_confluent_kafka() -> Outcome {
    suite::run(Cost::Heavy, || check("confluent-kafka", foreign::python("confluent_client.py")?))
}

#[test]
fn python_kafka_python() -> Outcome {
    suite::run(Cost::Heavy, || check("kafka-python", foreign::python("kafka_python_client.py")?))
}

#[test]
fn go_franz_go() -> Outcome {
    suite::run(Cost::Heavy, || check("franz-go", foreign::go()?))
}

#[test]
fn node_kafkajs() -> Outcome {
    suite::run(Cost::Heavy, || check("kafkajs", foreign::node()?))
}
