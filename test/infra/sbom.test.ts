import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findPythonPackages } from "../../infra/host/python-packages.js";
import { lockedPackages } from "../../infra/release/locked-packages.js";
import { makeSbom } from "../../infra/release/sbom.js";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const placed = lockedPackages({ root, names: ["konverge"] });
const sbom = () =>
  makeSbom({ name: "konverge-packages", version: "1.2.3", placed, created: new Date(0) });

/** The validator of the CycloneDX project, with the schema in its package. */
const VALIDATE = `import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(None if error is None else str(error))`;

test("a published installation has our packages at their names, and every package that they need", () => {
  const paths = placed.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["node_modules/konverge", "node_modules/bullmq"]));
  expect(paths.filter((path) => !path.startsWith("node_modules/"))).toEqual([]);
  expect(new Set(paths).size).toBe(paths.length);
  // Only packages of other systems may be absent from this installation.
  const absent = placed.filter(({ from }) => !existsSync(join(root, from)));
  expect(absent.filter(({ locked }) => locked.optional !== true)).toEqual([]);
  const tools = ["vitest", "typescript", "nx", "oxlint", "@konverge/demo", "@konverge/examples"];
  expect(paths.filter((path) => tools.includes(path.replace("node_modules/", "")))).toEqual([]);
});

test("the SBOM lists each package once, and is the same text each time", () => {
  const text = sbom();
  expect(sbom()).toBe(text);
  const { components, metadata } = JSON.parse(text) as {
    readonly components: readonly { readonly name: string; readonly "bom-ref": string }[];
    readonly metadata: { readonly timestamp: string };
  };
  expect(metadata.timestamp).toBe("1970-01-01T00:00:00.000Z");
  expect(new Set(components.map((each) => each["bom-ref"])).size).toBe(components.length);
  const names = (list: Iterable<string>) => [...new Set(list)].toSorted();
  expect(names(components.map(({ name }) => name))).toEqual(
    names(placed.map(({ path }) => path.slice(path.lastIndexOf("node_modules/") + 13))),
  );
});

test("the SBOM is valid in the schema of CycloneDX 1.5", async (context) => {
  const requirements = join(import.meta.dirname, "sbom-requirements.txt");
  const python = await findPythonPackages({ name: "cyclonedx", requirements });
  if ("missing" in python) return context.skip(python.missing);
  await using folder = await mkdtempDisposable(join(tmpdir(), "konverge-sbom-"));
  const file = join(folder.path, "sbom.json");
  await writeFile(file, sbom());
  await run(python.path, ["-c", VALIDATE, file]);
  await writeFile(file, sbom().replace('"specVersion": "1.5"', '"specVersion": 5'));
  await expect(run(python.path, ["-c", VALIDATE, file])).rejects.toThrow(/specVersion/);
});
