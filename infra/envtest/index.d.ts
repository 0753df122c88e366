/** The version of Kubernetes that a build produces, equal to its go.mod. */
export declare const KUBERNETES_VERSION: string;
/** The version of etcd that a build produces, equal to its go.mod. */
export declare const ETCD_VERSION: string;

/** No real control plane is available on this machine. The message names the reason and ends with a suggested fix. */
export declare class EnvtestUnavailable extends Error {
  readonly code: "envtest_unavailable";
  readonly fix: string;
  constructor(reason: string, options: { fix: string; cause?: unknown });
}

export interface Assets {
  /** Folder with `etcd` and `kube-apiserver`; good as `KUBEBUILDER_ASSETS`. */
  readonly directory: string;
  readonly origin: "environment" | "built" | "downloaded";
}

export interface AssetsOptions {
  /** Gets each line of progress: a download takes seconds, a build about five minutes. */
  readonly log: (line: string) => void;
  /** Build from Go modules (minutes) if there is neither an earlier build nor a download. Default: only with `CI=true`. */
  readonly build?: boolean | undefined;
  /** Variables used: `KUBEBUILDER_ASSETS`, `CI` and `PATH`. Default: `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * Finds the programs without starting them, so that a test runner resolves them once and passes `KUBEBUILDER_ASSETS` on.
 * @throws {EnvtestUnavailable}
 */
export declare function resolveAssets(options: AssetsOptions): Promise<Assets>;

export interface ControlPlaneUser {
  readonly name: string;
  readonly groups?: readonly string[];
}

export interface UserCredentials {
  /** A kubeconfig's YAML, with the client certificate inside. */
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
}

export interface ControlPlane extends AsyncDisposable {
  /** Administrator's kubeconfig (group system:masters), YAML. */
  readonly kubeconfig: string;
  readonly kubeconfigPath: string;
  /** `https://127.0.0.1:<port>`. */
  readonly server: string;
  /** The version from `/version`, for example `v1.36.3`. */
  readonly version: string;
  /** For tests that pause a process (SIGSTOP) or kill it. */
  readonly pids: { readonly etcd: number; readonly kubeApiserver: number };
  /** Credentials of the users passed to `startControlPlane`, by name. */
  readonly users: ReadonlyMap<string, UserCredentials>;
  /** A client certificate with CN = name and O = groups. RBAC decides what it may do. */
  addUser(name: string, groups?: readonly string[]): Promise<UserCredentials>;
  /** Ends both processes and removes their data. The same happens when this process dies. */
  stop(): Promise<void>;
}

export interface StartControlPlaneOptions extends AssetsOptions {
  /**
   * Absolute path of a file that gets one JSON line per completed request (audit level Metadata: user, user agent, verb,
   * object, code). Default: no audit log.
   */
  readonly auditLog?: string | undefined;
  readonly users?: readonly ControlPlaneUser[] | undefined;
  /** In addition to the default ones, such as `OwnerReferencesPermissionEnforcement`. */
  readonly admissionPlugins?: readonly string[] | undefined;
}

/**
 * Builds etcd and kube-apiserver from Go modules into the cache, unless this version is already there.
 * @returns the folder; valid as `KUBEBUILDER_ASSETS`
 * @throws {EnvtestUnavailable} no Go, no module proxy or a failed compilation
 */
export declare function buildAssets(options: Pick<AssetsOptions, "log">): Promise<string>;

/**
 * Starts a real kube-apiserver with its own etcd on free loopback ports; about four seconds.
 * @throws {EnvtestUnavailable} nothing to start
 */
export declare function startControlPlane(options: StartControlPlaneOptions): Promise<ControlPlane>;
