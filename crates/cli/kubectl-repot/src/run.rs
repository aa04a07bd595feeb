//! Runs a command, prints the answer, and gives the exit code.

use std::{io::Write, time::Duration};

use serde_json::json;

use crate::{
    answer::{Answer, failure_as_json},
    approval::type_name,
    check::check,
    connect::{Target, connect},
    cordon::cordon,
    diagnose::diagnose,
    drain::{DrainRequest, SLOT_WITHIN, drain},
    edit::Edited,
    failure::Failure,
    flags::{Command, Drain, Flags, Output, Takeover, Wait},
    generate::{completion, man, offered_words},
    hint::command_line,
    moves::{answer, effect_of_cancellation, request_cancellation, request_move, wait_for_arrival},
    plan::plan,
    session::Session,
    status,
    takeover::{LANE_WITHIN, TakeoverSettings, take_over_seed, take_over_shoot},
    terminal::{visible, visible_json},
    version::{version, warn_of_skew},
    watch::watch,
};

/// Runs the command, and returns the exit code.
pub async fn run(flags: &Flags) -> u8 {
    let outcome = Box::pin(command(flags)).await;
    match (outcome, flags.common.output) {
        (Ok(answer), Output::Text) => {
            print(&answer.text);
            answer.exit_code()
        }
        (Ok(answer), Output::Json) => {
            print(&visible_json(&format!("{:#}\n", answer.json)));
            answer.exit_code()
        }
        (Err(failure), Output::Text) => {
            eprintln!("error: {}", visible(&failure.to_string()));
            failure.exit_code()
        }
        (Err(failure), Output::Json) => {
            print(&visible_json(&format!("{:#}\n", failure_as_json(&failure))));
            failure.exit_code()
        }
    }
}

/// A reader that has closed the output, such as `head`, is no error.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

async fn command(flags: &Flags) -> Result<Answer, Failure> {
    match &flags.command {
        Command::Completion { shell } => {
            let script = completion(*shell);
            return Ok(Answer::new(script.clone(), &json!({"script": script})));
        }
        Command::Man => {
            let page = man()?;
            return Ok(Answer::new(page.clone(), &json!({"page": page})));
        }
        Command::OfferWords { words } => {
            let offered = offered_words(words);
            return Ok(Answer::new(offered.clone(), &json!({"words": offered})));
        }
        _ => {}
    }
    let answer = Box::pin(command_at_garden(flags)).await?;
    let text = visible(&answer.text).into_owned();
    Ok(Answer { text, ..answer })
}

/// A command that asks the garden.
async fn command_at_garden(flags: &Flags) -> Result<Answer, Failure> {
    let common = &flags.common;
    let session = Box::pin(connect(Target {
        kubeconfig: common.kubeconfig.as_deref(),
        context: common.context.as_deref(),
        namespace: common.namespace.as_deref(),
        request_within: common.request_within(),
    }))
    .await?;
    if let Some(warning) = Box::pin(warn_of_skew(&session, &flags.command)).await {
        report(&warning);
    }
    match &flags.command {
        Command::Status {
            shoot: Some(shoot), ..
        } => Box::pin(status::of_shoot(&session, shoot)).await,
        Command::Status { seeds: true, .. } => Box::pin(status::of_seeds(&session)).await,
        Command::Status { all_namespaces, .. } => {
            Box::pin(status::of_shoots(&session, *all_namespaces)).await
        }
        Command::Plan { shoot, seed, timeout } => {
            let within = Duration::from_secs(*timeout);
            Box::pin(plan(&session, shoot, seed, within, &report)).await
        }
        Command::Move { shoot, seed, wait } => Box::pin(move_shoot(&session, shoot, seed, *wait)).await,
        Command::Cancel { shoot, wait } => Box::pin(cancel(&session, shoot, *wait)).await,
        Command::Cordon { seed } => Box::pin(cordon(&session, seed, true)).await,
        Command::Uncordon { seed } => Box::pin(cordon(&session, seed, false)).await,
        Command::Drain(flags) => Box::pin(drain_seed(&session, flags)).await,
        Command::Takeover(takeover) => Box::pin(take_over(&session, takeover)).await,
        Command::Watch { shoot, timeout } => {
            let within = Duration::from_secs(*timeout);
            Box::pin(watch(&session, shoot, within, &report)).await
        }
        Command::Check { pre } => Box::pin(check(&session, *pre)).await,
        Command::Completion { .. } | Command::Man | Command::OfferWords { .. } => {
            Err(Failure::failed("the command needs no garden"))
        }
        Command::Version => Ok(Box::pin(version(&session)).await),
        Command::Diagnose { shoot, file } => Box::pin(diagnose(&session, shoot, file.as_deref())).await,
    }
}

/// Sentences about the progress go to the error output, so that the output has the answer alone.
fn report(sentence: &str) {
    eprintln!("{}", visible(sentence));
}

async fn interrupt() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler the signal ends the process.
        std::future::pending::<()>().await;
    }
}

async fn move_shoot(session: &Session, name: &str, seed: &str, wait: Wait) -> Result<Answer, Failure> {
    let shoot = Box::pin(session.shoot(session.namespace(), name)).await?;
    let moved = Box::pin(request_move(session, shoot, seed)).await?;
    let done = if wait.wait {
        format!("Shoot {name} is on seed {seed}.")
    } else {
        let [show, withdraw] = ["status", "cancel"]
            .map(|command| command_line(&format!("{command} {name}"), Some(session.namespace())));
        format!(
            "The move of shoot {name} to seed {seed} is requested. {show} shows the progress, and {withdraw} cancels the move until \
             status.seedName changes."
        )
    };
    finish(session, &moved, seed, wait, &done).await
}

async fn cancel(session: &Session, name: &str, wait: Wait) -> Result<Answer, Failure> {
    let shoot = Box::pin(session.shoot(session.namespace(), name)).await?;
    let cancelled = Box::pin(request_cancellation(session, shoot)).await?;
    let effect = effect_of_cancellation(&cancelled.shoot);
    let acting = cancelled
        .shoot
        .status
        .as_ref()
        .and_then(|status| status.seed_name.clone());
    finish(session, &cancelled, &acting.unwrap_or_default(), wait, &effect).await
}

/// Waits for the end if the caller wants, and answers.
async fn finish(
    session: &Session,
    edited: &Edited,
    seed: &str,
    wait: Wait,
    done: &str,
) -> Result<Answer, Failure> {
    let Some(within) = wait.within() else {
        return Ok(answer(edited, edited.unchanged.as_deref().unwrap_or(done)));
    };
    Box::pin(wait_for_arrival(
        session,
        &edited.shoot,
        seed,
        within,
        &report,
        interrupt(),
    ))
    .await?;
    Ok(answer(edited, done))
}

async fn drain_seed(session: &Session, flags: &Drain) -> Result<Answer, Failure> {
    let request = DrainRequest {
        from: &flags.seed,
        to: &flags.to,
        parallel: usize::from(flags.parallel),
        excluded: &flags.exclude,
        approval: flags.yes.then_some(flags.seed.as_str()),
        lane_within: LANE_WITHIN,
        slot_within: SLOT_WITHIN,
        within: Duration::from_secs(flags.timeout),
    };
    let prompt = |text: &str, name: &str| {
        type_name(&format!(
            "{text}Each move stops the API of the shoot for a while. Type {name} to approve the drain: "
        ))
    };
    tokio::select! {
        answer = Box::pin(drain(session, request, &prompt, &report)) => answer,
        () = interrupt() => Err(Failure::failed(format!(
            "the command was interrupted; moves under way go on, and the same command continues the drain. `kubectl repot status -A` shows \
             the moves, and `kubectl repot uncordon {}` opens the seed",
            flags.seed
        ))),
    }
}

fn takeover_settings<'a>(
    takeover: &'a Takeover,
    to: &'a str,
    wait: Option<Duration>,
) -> TakeoverSettings<'a> {
    TakeoverSettings {
        to,
        source_is_off: takeover.source_is_off,
        approval: takeover.yes.as_deref(),
        excluded: &takeover.exclude,
        lane_within: LANE_WITHIN,
        wait,
    }
}

async fn take_over(session: &Session, takeover: &Takeover) -> Result<Answer, Failure> {
    let requested = async {
        match (&takeover.shoot, &takeover.seed, &takeover.from, &takeover.to) {
            (Some(shoot), Some(to), _, _) => {
                let settings = takeover_settings(takeover, to, takeover.wait.within());
                Box::pin(take_over_shoot(session, shoot, settings, &approve_loss, &report)).await
            }
            (_, _, Some(from), Some(to)) => {
                let parallel = usize::from(takeover.parallel);
                // The wait for the trial decides on the rest.
                let wait = Some(Duration::from_secs(takeover.wait.timeout));
                let settings = takeover_settings(takeover, to, wait);
                Box::pin(take_over_seed(
                    session,
                    from,
                    parallel,
                    settings,
                    &approve_loss,
                    &report,
                ))
                .await
            }
            _ => Err(Failure::failed(
                "name a Shoot and a Seed, or --seed and --to; --help has the forms of the command",
            )),
        }
    };
    tokio::select! {
        answer = Box::pin(requested) => answer,
        () = interrupt() => Err(Failure::failed(
            "the command was interrupted; takeovers that the garden has approved go on, and `kubectl repot status -A` shows them",
        )),
    }
}

fn approve_loss(text: &str, name: &str) -> Option<String> {
    type_name(&format!(
        "{text}The loss is final. Type {name} to approve the takeover: "
    ))
}
