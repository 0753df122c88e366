/** The files of the scripts, by name. */
export const FILES: Readonly<Record<string, string>> = {
  "editor.sh": `#!/bin/sh
sed -i 's/app: shop/app: edited/' "$1"
`,
  "maps.yaml": `apiVersion: v1
kind: ConfigMap
metadata: { name: one, labels: { app: shop, tier: web } }
data: { a: "1", text: "several\\nlines" }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: two, labels: { app: shop } }
data: { b: "2" }
`,
  "maps-changed.yaml": `apiVersion: v1
kind: ConfigMap
metadata: { name: one, labels: { app: shop } }
data: { a: "10", c: "3" }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: three, labels: { app: shop } }
`,
  "only-one.yaml": `apiVersion: v1
kind: ConfigMap
metadata: { name: one, labels: { app: shop } }
data: { a: "1" }
`,
  "shop.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: { name: shop, labels: { app: shop } }
spec:
  replicas: 2
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec:
      containers:
        - name: web
          image: example.com/web:1
          ports: [{ containerPort: 80, name: http }]
          env: [{ name: A, value: "1" }]
          resources: { requests: { cpu: 100m, memory: 64Mi } }
---
apiVersion: v1
kind: Service
metadata: { name: shop, labels: { app: shop } }
spec:
  selector: { app: shop }
  ports: [{ port: 80, targetPort: http }]
`,
  "shop-changed.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: { name: shop, labels: { app: shop, more: "yes" } }
spec:
  replicas: 3
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec:
      containers:
        - name: web
          image: example.com/web:2
          ports: [{ containerPort: 80, name: http }]
        - name: side
          image: example.com/side:1
`,
  "pod.yaml": `apiVersion: v1
kind: Pod
metadata: { name: box, labels: { app: box } }
spec:
  terminationGracePeriodSeconds: 5
  containers:
    - { name: main, image: "example.com/box:1", command: ["sleep", "1"] }
  volumes:
    - { name: tmp, emptyDir: {} }
`,
  "invalid.yaml": `apiVersion: v1
kind: ConfigMap
metadata: { name: Not_A_Name }
data: { a: 1 }
`,
  "unknown-field.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: { name: typo }
spec:
  replica: 2
  selector: { matchLabels: { app: typo } }
  template:
    metadata: { labels: { app: typo } }
    spec:
      containers: [{ name: web, image: a, ports: [{ port: 1 }] }]
`,
  "unknown-kind.yaml": `apiVersion: example.com/v1
kind: Nothing
metadata: { name: a }
`,
  "parts-crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: parts.foreign.konverge.dev }
spec:
  group: foreign.konverge.dev
  scope: Namespaced
  names: { plural: parts, singular: part, kind: Part, shortNames: [pt], categories: [all] }
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: { specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector }
      additionalPrinterColumns:
        - { name: Size, type: string, jsonPath: .spec.size, description: The size of the part. }
        - { name: Replicas, type: integer, jsonPath: .spec.replicas }
        - { name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status' }
        - { name: Note, type: string, jsonPath: .spec.note, priority: 1 }
        - { name: Age, type: date, jsonPath: .metadata.creationTimestamp }
      schema:
        openAPIV3Schema:
          type: object
          description: A part of a machine.
          properties:
            spec:
              type: object
              description: What is wanted.
              required: [size]
              properties:
                size: { type: string, enum: [s, m, l], description: The size of the part. }
                replicas: { type: integer, minimum: 0, default: 1 }
                note: { type: string }
                ports:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties: { name: { type: string }, port: { type: integer } }
            status:
              type: object
              properties:
                replicas: { type: integer }
                selector: { type: string }
                conditions:
                  type: array
                  items:
                    type: object
                    properties: { type: { type: string }, status: { type: string } }
`,
  "part.yaml": `apiVersion: foreign.konverge.dev/v1
kind: Part
metadata: { name: wheel, labels: { app: shop } }
spec: { size: s, note: round, ports: [{ name: a, port: 1 }] }
`,
  "part-changed.yaml": `apiVersion: foreign.konverge.dev/v1
kind: Part
metadata: { name: wheel }
spec: { size: m, ports: [{ name: b, port: 2 }] }
`,
  "all-kinds.yaml": `apiVersion: v1
kind: Secret
metadata: { name: key }
type: Opaque
stringData: { password: secret }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: worker }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: disk }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  serviceName: db
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: db, image: "example.com/db:1" }] }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent }
spec:
  selector: { matchLabels: { app: agent } }
  template:
    metadata: { labels: { app: agent } }
    spec: { containers: [{ name: agent, image: "example.com/agent:1" }] }
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: { name: set }
spec:
  selector: { matchLabels: { app: set } }
  template:
    metadata: { labels: { app: set } }
    spec: { containers: [{ name: set, image: "example.com/set:1" }] }
---
apiVersion: batch/v1
kind: Job
metadata: { name: once }
spec:
  template:
    spec: { restartPolicy: Never, containers: [{ name: once, image: "example.com/once:1" }] }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: often }
spec:
  schedule: "*/5 * * * *"
  jobTemplate:
    spec:
      template:
        spec: { restartPolicy: Never, containers: [{ name: often, image: "example.com/often:1" }] }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web }
spec:
  rules:
    - host: shop.example.com
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: shop, port: { number: 80 } } } }] }
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: closed }
spec: { podSelector: { matchLabels: { app: shop } }, policyTypes: [Ingress] }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: one-left }
spec: { minAvailable: 1, selector: { matchLabels: { app: shop } } }
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: shop }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: shop }
  maxReplicas: 3
  metrics: [{ type: Resource, resource: { name: cpu, target: { type: Utilization, averageUtilization: 80 } } }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader }
rules: [{ apiGroups: [""], resources: [pods], verbs: [get, list] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects: [{ kind: ServiceAccount, name: worker, namespace: default }]
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: { name: leader }
spec: { holderIdentity: somebody, leaseDurationSeconds: 15 }
`,
};
