import { labelsOf, selectorOf, type Component, type Installation } from "./manifest.ts";

export interface PodOptions {
  readonly component: Component;
  readonly args: readonly string[];
  /** Variables without secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Secrets mounted as files, which neither `kubectl describe` nor a crash report shows. */
  readonly secrets: readonly SecretFile[];
  readonly port: { readonly name: string; readonly number: number };
  /** Name of the ServiceAccount. */
  readonly account: string;
  /** Whether the Pod calls the API server. */
  readonly token: boolean;
  readonly graceSeconds: number;
  readonly memoryMiB: number;
}

export interface SecretFile {
  /** Name of the setting in the environment, without `_FILE`. */
  readonly setting: string;
  readonly secret: string;
  readonly key: string;
}

const SECRETS = "/etc/konverge";
/** The user `node` of the official images, by number, because the kubelet cannot check a name for root. */
const NODE_UID = 1000;
/** Memory outside of the heap: buffers, code, stacks. */
const OUTSIDE_HEAP_MIB = 128;
/** For /tmp and the logs that the kubelet keeps: 50 MiB by default, several times that on some platforms. */
const DISK_LIMIT = "1Gi";

/** Returns a Pod template that meets the Pod Security level `restricted`. */
export function podTemplate(installation: Installation, options: PodOptions): object {
  const { component, args, env, secrets, port, account, token, graceSeconds, memoryMiB } = options;
  const probe = (path: string, rest: object) => ({
    httpGet: { path, port: port.name },
    timeoutSeconds: 5,
    ...rest,
  });
  return {
    metadata: { labels: labelsOf(installation, component) },
    spec: {
      serviceAccountName: account,
      automountServiceAccountToken: token,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: graceSeconds,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: NODE_UID,
        runAsGroup: NODE_UID,
        fsGroup: NODE_UID,
        seccompProfile: { type: "RuntimeDefault" },
      },
      topologySpreadConstraints: ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map(
        (topologyKey) => ({
          maxSkew: 1,
          topologyKey,
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: { matchLabels: selectorOf(installation, component) },
        }),
      ),
      containers: [
        {
          name: component,
          image: installation.image,
          args,
          env: [
            ...Object.entries(env),
            ...secrets.map(({ setting }) => [`${setting}_FILE`, `${SECRETS}/${setting}`] as const),
            [
              "NODE_OPTIONS",
              `--max-old-space-size=${memoryMiB - OUTSIDE_HEAP_MIB} --max-semi-space-size=4`,
            ] as const,
          ].map(([name, value]) => ({ name, value })),
          ports: [{ name: port.name, containerPort: port.number }],
          // Allows time to load the code. An outage of Redis or the API server is no reason to restart.
          startupProbe: probe("/livez", { periodSeconds: 2, failureThreshold: 30 }),
          livenessProbe: probe("/livez", { periodSeconds: 10, failureThreshold: 3 }),
          readinessProbe: probe("/readyz", { periodSeconds: 5, failureThreshold: 2 }),
          // No CPU limit, because a throttled event loop loses its locks.
          resources: {
            requests: { cpu: "250m", memory: `${memoryMiB}Mi`, "ephemeral-storage": "128Mi" },
            limits: { memory: `${memoryMiB}Mi`, "ephemeral-storage": DISK_LIMIT },
          },
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ["ALL"] },
            readOnlyRootFilesystem: true,
          },
          volumeMounts: [
            { name: "tmp", mountPath: "/tmp" },
            ...(secrets.length > 0
              ? [{ name: "secrets", mountPath: SECRETS, readOnly: true }]
              : []),
          ],
        },
      ],
      volumes: [
        { name: "tmp", emptyDir: { sizeLimit: "64Mi" } },
        ...(secrets.length > 0
          ? [
              {
                name: "secrets",
                projected: {
                  defaultMode: 0o440,
                  sources: secrets.map(({ setting, secret, key }) => ({
                    secret: { name: secret, items: [{ key, path: setting }] },
                  })),
                },
              },
            ]
          : []),
      ],
    },
  };
}
