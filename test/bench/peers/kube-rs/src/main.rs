//! A controller of Gauges with kube-rs: reads from its cache, writes the status if it differs.
//!
//! Prints "ready" on stdout when every object has been reconciled once, and exits when its stdin closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::{WatchStreamExt, predicates, reflector, watcher};
use kube::{Client, CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use tokio::sync::Notify;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Part {
    name: String,
    value: String,
}

#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, Serialize)]
#[kube(group = "bench.konverge.dev", version = "v1", kind = "Gauge", namespaced)]
#[kube(status = "GaugeStatus")]
pub struct GaugeSpec {
    step: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct GaugeStatus {
    #[serde(default)]
    seen: i64,
}

struct Context {
    gauges: Api<Gauge>,
    reconciles: AtomicUsize,
    progress: Notify,
}

async fn reconcile(gauge: Arc<Gauge>, context: Arc<Context>) -> Result<Action, kube::Error> {
    let result = write_status(&gauge, &context.gauges).await;
    context.reconciles.fetch_add(1, Ordering::Relaxed);
    context.progress.notify_one();
    result.map(|()| Action::await_change())
}

async fn write_status(gauge: &Gauge, gauges: &Api<Gauge>) -> Result<(), kube::Error> {
    if gauge.status.as_ref().is_some_and(|status| status.seen == gauge.spec.step) {
        return Ok(());
    }
    let mut written = gauge.clone();
    written.status = Some(GaugeStatus { seen: gauge.spec.step });
    gauges.replace_status(&gauge.name_any(), &PostParams::default(), &written).await?;
    Ok(())
}

fn retry(_: Arc<Gauge>, _: &kube::Error, _: Arc<Context>) -> Action {
    Action::requeue(Duration::from_millis(5))
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(concurrency)) = (arguments.next(), arguments.next()) else {
        return Err("usage: kube-rs-peer KUBECONFIG CONCURRENCY (0: unlimited)".into());
    };
    let kubeconfig = Kubeconfig::read_from(path)?;
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let gauges: Api<Gauge> = Api::namespaced(Client::try_from(config)?, "default");
    let count = gauges.list_metadata(&ListParams::default()).await?.items.len();

    let (reader, writer) = reflector::store();
    let changed = watcher(gauges.clone(), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    let context =
        Arc::new(Context { gauges, reconciles: AtomicUsize::new(0), progress: Notify::new() });
    let controller = Controller::for_stream(changed, reader)
        .with_config(Config::default().concurrency(concurrency.parse()?))
        .run(reconcile, retry, context.clone())
        .for_each(async |_| ());

    let ready = async {
        while context.reconciles.load(Ordering::Relaxed) < count {
            context.progress.notified().await;
        }
        println!("ready");
        let mut rest = Vec::new();
        tokio::io::stdin().read_to_end(&mut rest).await
    };
    tokio::select! {
        () = controller => Err("the controller has ended".into()),
        ended = ready => { ended?; std::process::exit(0) }
    }
}
