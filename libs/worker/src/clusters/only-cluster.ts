import { defined } from "@konverge/core";
import {
  openClusterWorker,
  readServerVersion,
  UNUSABLE,
  type OpenWorker,
} from "../cluster-worker.ts";
import type { OpenWorkerOptions } from "../worker-setup.ts";
import type { ClusterStatus } from "./cluster-status.ts";
import { reported } from "./report-clusters.ts";

/** Runs a worker on one cluster, and reports the state of the cluster. @throws as `openWorker` */
export async function openOnlyCluster(options: OpenWorkerOptions): Promise<OpenWorker> {
  const worker = await openClusterWorker(options);
  const { home, registry, name } = worker;
  let status: ClusterStatus = { name, state: "engaged", since: new Date() };
  const set = (change: Partial<ClusterStatus>, reason?: string) => {
    const { reason: _before, ...rest } = status;
    status = { ...rest, ...change, ...defined({ reason }) };
    registry.changed();
  };
  const unfollow = home.guard.onWorkable((isWorkable) => {
    const state = isWorkable ? "engaged" : "failing";
    if (state !== status.state) {
      set({ state, since: new Date() }, isWorkable ? undefined : UNUSABLE);
    }
  });
  const unobserve = options.metrics.observeClusters(() => [status]);
  registry.follow(() => reported([status], "configuration"));
  void readServerVersion(worker).then((serverVersion) =>
    set(defined({ serverVersion }), status.reason),
  );
  const end = () => {
    unfollow();
    unobserve();
  };
  return {
    workerId: worker.workerId,
    get ready() {
      return worker.ready;
    },
    get clusters() {
      return [status];
    },
    stop(how) {
      end();
      return worker.stop(how);
    },
    kill() {
      end();
      return worker.kill();
    },
  };
}
