import type { Controller } from "@konverge/engine";
import type { Scenario, SimulatedConfig } from "../../../apps/cli/src/testing/index.ts";

/** A controller with a known mistake, and its correct version. */
export interface PlantedBug {
  readonly name: string;
  /** The check that finds the bug. */
  readonly check: string;
  /** True if a run without faults finds it. */
  readonly isPlain?: true;
  /** A configuration for one run. */
  readonly wrong: () => Planted;
  readonly right: () => Planted;
  readonly scenario: (planted: () => Planted | undefined) => Scenario;
}

/** A configuration with the systems outside of the cluster that it calls. */
export interface Planted extends SimulatedConfig {
  /** Effects outside of the cluster, in order. */
  readonly outside?: string[];
}

export const planted = (...controllers: Controller[]): Planted => ({ controllers });
