import type { CallVerb } from "@konverge/core";
import { Counter, Histogram, type Registry } from "prom-client";

/** A sent API call. */
export interface ApiCallMetrics {
  readonly verb: CallVerb;
  /** Host and port of the API server. */
  readonly host: string;
  /** 0 without a response. */
  readonly code: number;
  readonly seconds: number;
  /** Wait for its token. */
  readonly waitedSeconds: number;
}

/** client-go names calls by their HTTP method, in labels called `method` and, in its histograms, `verb`. */
const METHODS: Readonly<Record<CallVerb, string>> = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  apply: "PATCH",
  delete: "DELETE",
};

/** The buckets of client-go in Kubernetes components. */
const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** client-go's metrics of API calls. The returned functions count one call to the API server of the cluster. */
export function createRestClientMetrics(
  registry: Registry,
): (cluster: string) => (call: ApiCallMetrics) => void {
  const registers = [registry];
  const requests = new Counter({
    name: "konverge_rest_client_requests_total",
    help: "Total number of API calls by status code, method and host; code <error> means no response.",
    labelNames: ["cluster", "code", "method", "host"],
    registers,
  });
  const histogram = (name: string, help: string) =>
    new Histogram({
      name: `konverge_rest_client_${name}`,
      help,
      labelNames: ["cluster", "verb", "host"],
      buckets: SECONDS,
      registers,
    });
  const latency = histogram("request_duration_seconds", "Duration of an API call.");
  const limiter = histogram("rate_limiter_duration_seconds", "Wait of an API call for its token.");
  return (cluster) =>
    ({ verb, host, code, seconds, waitedSeconds }) => {
      const method = METHODS[verb];
      requests.inc({ cluster, code: code === 0 ? "<error>" : String(code), method, host });
      latency.observe({ cluster, verb: method, host }, seconds);
      limiter.observe({ cluster, verb: method, host }, waitedSeconds);
    };
}
