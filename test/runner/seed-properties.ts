import { configureGlobal, readConfigureGlobal } from "fast-check";

/** Properties without a seed of their own draw from the seed of the run, so that a failure in CI repeats on another machine. */
const seed = process.env["KONVERGE_TEST_SEED"];
if (seed !== undefined) configureGlobal({ ...readConfigureGlobal(), seed: Number(seed) });
