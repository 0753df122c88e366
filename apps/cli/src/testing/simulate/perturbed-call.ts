import type { SimulatedFault } from "./fault.ts";
import type { SimulatedRun } from "./simulated-run.ts";
import type { ActorFaults } from "./simulated-wire.ts";
import type { Place } from "./virtual-clock.ts";

/** A call of user code that leaves the process, apart from API calls. */
export interface LocalCall<R> {
  /** For the story, such as `external charge`. */
  readonly what: string;
  readonly execute: () => R | Promise<R>;
  /** False if the call must not fail. Default true. */
  readonly canFail?: boolean;
}

/** Makes a call with the faults that the run has for it: crashes, suspensions, delays and failures before and after its effect. */
export async function perturbedCall<R>(
  run: SimulatedRun,
  place: Place,
  faults: ActorFaults,
  { what, execute, canFail = true }: LocalCall<R>,
): Promise<R> {
  const { actor } = place;
  const call = run.nextCall({ canConflict: false });
  const find = <K extends SimulatedFault["kind"]>(kind: K) =>
    call.faults.find((fault): fault is Extract<SimulatedFault, { kind: K }> => fault.kind === kind);
  const [dies, slow, stops] = [find("crash"), find("slow"), find("suspend")];
  const fail = canFail ? find("fail") : undefined;
  const isExecuted = dies?.when !== "before" && fail?.landed !== false;
  const text = `call ${call.number}: ${what}`;
  if (find("early") !== undefined) run.onEarly();
  const delay = async (when: "before" | "after") => {
    if (stops?.when === when) faults.suspend(actor, stops.ms);
    const ms = slow?.when === when ? slow.ms : 0;
    // A suspended process continues later.
    if (stops?.when === when || ms > 0) {
      await new Promise<void>((resolve) => {
        run.clock.after(place, ms, resolve);
      });
    }
  };
  await delay("before");
  run.note(actor.name, isExecuted ? text : `${text}, not executed`);
  const result = isExecuted ? await execute() : undefined;
  await delay("after");
  if (dies !== undefined) {
    faults.crash(actor, dies.downMs);
    await new Promise<never>(() => undefined);
  }
  if (fail !== undefined) throw new Error(`${what} failed: ${fail.answer}`);
  return result as R;
}
