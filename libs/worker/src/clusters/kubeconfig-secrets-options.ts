import type { ErrorIssue } from "@konverge/core";
import { parseLabelSelector, type Confinement } from "@konverge/kube";
import type { HomeCluster, ProvidedOptions } from "./cluster-provider.ts";

/** The options of `kubeconfigSecrets`. */
export interface KubeconfigSecretsOptions extends Confinement {
  /** The namespace of the Secrets in the home cluster. */
  readonly namespace: string;
  /** Label selector of the Secrets. Default `konverge.dev/cluster=true`. */
  readonly labels?: string;
  /** Key of the kubeconfig in the data of a Secret. Default `kubeconfig`. */
  readonly key?: string;
  /**
   * Suffix of the Secrets' names. Other Secrets are ignored; the name of the cluster is the part before the suffix. Default:
   * none.
   */
  readonly suffix?: string;
  /** The cluster with the Secrets, named by the setting `cluster`. Default: found as without a provider. */
  readonly home?: HomeCluster;
  /** Limits and labels of a cluster. Default: the labels of the Secret. */
  readonly options?: (name: string, labels: Readonly<Record<string, string>>) => ProvidedOptions;
}

/** A table, so that a new option without an entry does not compile. */
const CHECKS: Readonly<
  Record<
    keyof KubeconfigSecretsOptions,
    readonly [isValid: (value: unknown) => boolean, rule: string]
  >
> = {
  namespace: [isNamespace, "must be the namespace of the Secrets"],
  labels: [isSelector, 'must be a label selector such as "tier=prod" or "tier in (prod, test)"'],
  key: [isText, "must be a key in the data of the Secrets"],
  suffix: [isText, 'must be the end of the names of the Secrets, such as "-kubeconfig"'],
  home: [isObject, "must be an object such as { engage: true }; omit it for the defaults"],
  options: [isFunction, "must be a function (name, labels) => options"],
  allowExec: [(value) => typeof value === "boolean", "must be true or false"],
};

/** Returns all problems of the options. */
export function findSecretsIssues(given: KubeconfigSecretsOptions): ErrorIssue[] {
  const issue = (option: string, detail: string): ErrorIssue => ({
    pointer: `/clusters/${option}`,
    detail: `clusters.${option}: ${detail}`,
  });
  const valid = Object.keys(CHECKS);
  const unknown = Object.keys(given).filter((option) => !valid.includes(option));
  const options: Readonly<Record<string, unknown>> = { ...given };
  return [
    ...unknown.map((option) => issue(option, `is unknown; valid options: ${valid.join(", ")}`)),
    ...Object.entries(CHECKS).flatMap(([option, [isValid, rule]]) => {
      const isOmitted = options[option] === undefined && option !== "namespace";
      return isOmitted || isValid(options[option]) ? [] : [issue(option, rule)];
    }),
  ];
}

function isNamespace(value: unknown): boolean {
  return typeof value === "string" && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value);
}

function isSelector(value: unknown): boolean {
  return typeof value === "string" && value !== "" && parseLabelSelector(value) !== undefined;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isFunction(value: unknown): boolean {
  return typeof value === "function";
}
