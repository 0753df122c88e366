import { describeSettings } from "@konverge/contracts";

/** Unsets every setting of the shell, which may be set up for another installation. Empty counts as unset. */
export function isolatedEnv(): Record<string, string> {
  const names = describeSettings().flatMap(({ env }) => [env, `${env}_FILE`]);
  return Object.fromEntries(names.map((name) => [name, ""]));
}
