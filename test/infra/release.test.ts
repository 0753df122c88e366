import { globSync, readFileSync } from "node:fs";
import { load } from "js-yaml";
import { expect, test } from "vitest";

const read = (file: string) => readFileSync(file, "utf8");
const { version } = JSON.parse(read("package.json")) as { readonly version: string };

test.each(globSync("{apps,libs,infra}/*/package.json"))(
  "%s has the version of the release, and a description",
  (file) => {
    const manifest = JSON.parse(read(file)) as object;
    expect(manifest).toMatchObject({
      version,
      description: expect.stringMatching(/^[A-Z].*[^.]$/),
      license: "Apache-2.0",
    });
  },
);

test("the lock file, the chart and the changelog have the version of the release", () => {
  const { packages } = JSON.parse(read("package-lock.json")) as {
    readonly packages: Readonly<Record<string, { readonly version?: string }>>;
  };
  const own = Object.entries(packages).filter(([path]) => !path.includes("node_modules/"));
  expect(own.filter(([, locked]) => locked.version !== version)).toEqual([]);
  expect(load(read("infra/helm/konverge/Chart.yaml"))).toMatchObject({
    version,
    appVersion: version,
  });
  const [, newest] = /^## (\S+)/m.exec(read("CHANGELOG.md")) ?? [];
  expect(newest).toBe(version);
});
