import type { AdmitRequest } from "@konverge/core";

/** A token request without reports and demand; tests override fields. */
export const quietAsk: AdmitRequest = {
  worker: "a",
  runId: "r1",
  answeredUs: 0,
  elapsedUs: 0,
  generation: 1,
  ok: 0,
  failed: 0,
  trailing: 0,
  slow: 0,
  throttled: 0,
  late: 0,
  retryAfterUs: 0,
  ticket: "",
  verdict: "",
  want: 0,
  need: 0,
  rank: 1,
  turn: "none",
  probe: "",
  random: 0.5,
};
