import { findHelm } from "../../infra/helm/find-helm.js";
import { findKedaScaler } from "../../infra/keda/find-keda-scaler.js";
import { findKubectl } from "../../infra/kubectl/find-kubectl.js";
import { findPromql } from "../../infra/prometheus/find-promql.js";
import { FOREIGN_PROGRAMS } from "../conformance/foreign/foreign-programs.ts";

/**
 * Builds the programs of other projects that tests compare Konverge with. A first build takes minutes and could exceed the timeout
 * of a test. A failed build is reported by the test that needs the program.
 * @param isLong also those that only the long form needs
 */
export async function buildTools(log: (line: string) => void, isLong: boolean): Promise<void> {
  const options = { log, build: true };
  const programs = FOREIGN_PROGRAMS.map((each) => () => each.find(options));
  const tools = [findHelm, findPromql, findKubectl, ...(isLong ? [findKedaScaler] : [])];
  const finds = tools.map((find) => () => find(options));
  // In turn, because each build uses all cores.
  for (const find of [...finds, ...programs]) {
    try {
      await find();
    } catch (error) {
      log(`a program of another project was not built: ${String(error)}`);
    }
  }
}
