/** Runs programs written with client-node against the server of a kubeconfig, and prints what they see. */
import { custom } from "./custom.ts";
import { election } from "./election.ts";
import { informer, watches } from "./informer.ts";
import { objects } from "./objects.ts";
import { randomCalls } from "./random.ts";
import { start } from "./start.ts";
import { typed } from "./typed.ts";
import { openWorld, type World } from "./world.ts";

const SCENARIOS: Readonly<Record<string, (world: World) => Promise<void>>> = {
  informer,
  watches,
  election,
  custom,
  objects,
  typed,
  start,
};

for (const name of process.argv.slice(2)) {
  const [, seed] = /^random-(\d+)$/.exec(name) ?? [];
  const scenario =
    seed === undefined ? SCENARIOS[name] : (world: World) => randomCalls(world, Number(seed));
  if (scenario === undefined) throw new Error(`no scenario ${name}`);
  console.log(`== ${name}`);
  await scenario(openWorld());
}
