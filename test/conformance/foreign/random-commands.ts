import type { Script } from "./kubectl-client.ts";
import { makeRandom } from "./random-numbers.ts";

type Choose = <T>(items: readonly T[]) => T;

const NAMES = ["one", "two", "three"];
const VALUES = ["1", "2", "a", "", "long-value"];
const MANAGERS = ["kubectl", "kubectl", "other", "third"];
const FORMS = ["-o name", "-o wide", "--show-labels", "-o json --show-managed-fields", ""];

/** The kinds of command, each with its weight in the list. */
const COMMANDS: readonly ((choose: Choose) => string)[] = [
  (choose) => `apply -f ${choose(FILES)}`,
  (choose) => `apply -f ${choose(FILES)}`,
  (choose) => `apply --server-side --field-manager=${choose(MANAGERS)} -f ${choose(FILES)}`,
  (choose) => `apply --server-side --field-manager=${choose(MANAGERS)} -f ${choose(FILES)}`,
  (choose) =>
    `apply --server-side --force-conflicts --field-manager=${choose(MANAGERS)} -f ${choose(FILES)}`,
  (choose) => `create -f ${choose(FILES)}`,
  (choose) => `replace -f ${choose(FILES)}`,
  (choose) => `diff -f ${choose(FILES)}`,
  (choose) => `create configmap ${choose(NAMES)} --from-literal=a=${choose(VALUES)}`,
  (choose) => `delete cm ${choose(NAMES)}`,
  (choose) => `delete deploy shop --wait=false --cascade=${choose(["background", "orphan"])}`,
  (choose) =>
    `patch cm ${choose(NAMES)} -p '{"data":{"${choose(["a", "b"])}":"${choose(VALUES)}"}}'`,
  (choose) =>
    `patch cm ${choose(NAMES)} --type=merge -p '{"data":{"a":null,"c":"${choose(VALUES)}"}}'`,
  (choose) =>
    `patch cm ${choose(NAMES)} --type=json -p '[{"op":"${choose(["add", "replace", "test"])}","path":"/data/a","value":"${choose(VALUES)}"}]'`,
  (choose) => `patch cm ${choose(NAMES)} --type=json -p '[{"op":"remove","path":"/data/b"}]'`,
  (choose) => `label cm ${choose(NAMES)} app=${choose(VALUES)} --overwrite`,
  (choose) => `label cm ${choose(NAMES)} ${choose(["app-", "x=1", "x=2"])}`,
  (choose) => `annotate cm ${choose(NAMES)} note=${choose(VALUES)}`,
  (choose) => `scale deploy shop --replicas=${choose(["0", "1", "3"])}`,
  (choose) => `set image deploy/shop web=example.com/web:${choose(["1", "2", "3"])}`,
  (choose) => `set env deploy/shop A=${choose(["1", "2"])} B=${choose(["1", "2"])}`,
  (choose) => `get cm -l '${choose(["app", "!app", "app in (shop,1)", "app!=shop,x", "x>1"])}'`,
  (choose) => `get cm ${choose(NAMES)} ${choose(FORMS)}`,
  (choose) => `get deploy shop ${choose(FORMS)}`,
  () => "get deploy,svc,cm",
];

const FILES = ["maps.yaml", "maps-changed.yaml", "only-one.yaml", "shop.yaml", "shop-changed.yaml"];

/** Makes a script of random commands over a few objects; its end shows all of them with their managers. */
export function makeRandomScript(seed: number, count: number): Script {
  const random = makeRandom(seed);
  const choose: Choose = (items) => items[Math.floor(random() * items.length)] as never;
  const commands = Array.from({ length: count }, () => choose(COMMANDS)(choose));
  const end = "get cm,deploy,svc -o json --show-managed-fields";
  return { name: `random commands, seed ${seed}`, commands: [...commands, end].join("\n") };
}
