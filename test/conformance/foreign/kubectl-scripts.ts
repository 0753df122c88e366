import type { Script } from "./kubectl-client.ts";

interface ChosenScript extends Script {
  /** Runs only in the long form. */
  readonly isLong?: true;
}

/** Everyday commands. Every script has a namespace of its own. */
export const KUBECTL_SCRIPTS: readonly ChosenScript[] = [
  {
    name: "creates, reads, changes and deletes ConfigMaps",
    commands: `
      create -f maps.yaml
      create configmap a --from-literal=k=v
      create configmap a --from-literal=k=v
      get cm
      get cm one two -o wide --show-labels
      get cm one -o json --show-managed-fields
      get cm -o name
      get cm -l app=shop,tier=web --no-headers
      get cm --sort-by=.metadata.name -L app
      get cm,secrets none
      apply -f maps-changed.yaml
      patch cm one -p '{"data":{"a":"2"}}'
      label cm one x=1 tier-
      annotate cm one n=1 --overwrite
      edit cm two
      diff -f maps.yaml
      get cm -o custom-columns=NAME:.metadata.name,DATA:.data
      delete cm one
      delete -f maps-changed.yaml
      delete cm --all
      get cm
    `,
  },
  {
    name: "applies workloads on the client and on the server",
    commands: `
      apply -f shop.yaml
      apply -f shop-changed.yaml
      apply --server-side -f shop.yaml --field-manager=other
      apply --server-side -f shop.yaml --field-manager=other --force-conflicts
      scale deploy shop --replicas=4
      set image deploy/shop web=example.com/web:3
      rollout restart deploy/shop
      rollout status deploy/shop --timeout=1s
      get deploy,svc
      get deploy shop -o json --show-managed-fields
      describe deploy shop
      delete deploy shop --cascade=foreground --wait=false
      get deploy shop -o jsonpath={.metadata.finalizers}
      delete -f shop.yaml --ignore-not-found --wait=false
    `,
  },
  {
    name: "serves custom resources",
    commands: `
      apply -f parts-crd.yaml
      wait --for=condition=established crd/parts.foreign.konverge.dev
      apply -f part.yaml
      get pt -o wide
      get all
      apply --server-side -f part-changed.yaml
      patch part wheel --type=merge -p '{"spec":{"size":"xl"}}'
      patch part wheel --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
      scale part wheel --replicas=3
      wait part wheel --for=condition=Ready
      wait part wheel '--for=jsonpath={.spec.replicas}=3'
      explain part
      explain part.spec
      get part wheel -o json --show-managed-fields
      delete part wheel
      wait part wheel --for=delete
      delete crd parts.foreign.konverge.dev
      get parts
    `,
  },
  {
    name: "reads in every form",
    isLong: true,
    commands: `
      apply -f maps.yaml
      get cm/one cm/none
      get cm one -o json
      get cm -o json
      get cm -o yaml
      get cm -o jsonpath={.items[*].metadata.name}
      get cm -o 'go-template={{len .items}}'
      get cm -l 'tier notin (web)'
      get cm -l 'tier in (web,db),app'
      get cm -l '!tier'
      get cm -l 'a b'
      get cm -l 'a in'
      get cm -l 'a=='
      get cm -l '=a'
      get cm -l 'a in (b'
      get cm -l 'a>1'
      get cm -l 'a>b'
      get cm --field-selector metadata.name=one
      get cm --field-selector metadata.name!=one
      get cm --field-selector data.a=1
      get cm --chunk-size=1
      get cm --ignore-not-found none
      get nothing
      get cm one -w --request-timeout=1s
      get cm --watch-only --request-timeout=1s
      get cm one --subresource=status
      get cm,secrets
      get cm,secrets -o name
      get -f maps.yaml
      get cm one --output-watch-events -w --request-timeout=1s
      describe cm one
      describe cm
    `,
  },
  {
    name: "creates every kind by its generator",
    isLong: true,
    commands: `
      create configmap b --from-literal=k=v --dry-run=server -o yaml
      create configmap b --dry-run=client -o yaml
      create configmap c --from-file=pod.yaml
      create secret generic s --from-literal=p=w
      create secret docker-registry r --docker-server=example.com --docker-username=u --docker-password=p
      create serviceaccount sa
      create deployment web --image=example.com/web:1 --replicas=2 --port=80
      create service clusterip web --tcp=80:8080
      create service nodeport np --tcp=80:8080
      create service externalname en --external-name=example.com
      create service loadbalancer lb --tcp=80:8080
      create job j --image=example.com/j:1
      create cronjob cj --image=example.com/j:1 '--schedule=x'
      create cronjob cj --image=example.com/j:1 '--schedule=*/1 * * * *' -- echo hi
      create job from --from=cronjob/cj
      create role r --verb=get,list --resource=pods
      create role r2 --verb=get --resource=nothings
      create rolebinding rb --role=r --serviceaccount=default:sa
      create ingress web '--rule=a.example.com/*=web:80'
      create poddisruptionbudget pdb --min-available=1 --selector=app=web
      create -f maps.yaml --save-config
      create -f - < pod.yaml
      create -f invalid.yaml
      create -f unknown-field.yaml
      create -f unknown-field.yaml --validate=warn
      create -f unknown-field.yaml --validate=ignore
      create -f unknown-kind.yaml
      run pod --image=example.com/p:1 --port=80
      expose deployment web --port=80 --name=web2
      expose deployment web --port=80
      autoscale deployment web --min=1 --max=3 --cpu=80%
      get deployments,jobs,cronjobs,roles,rolebindings,ingress,pdb,sa,secrets,hpa,pods -o wide
      get services
      get service web -o yaml
      get deploy web -o yaml
      get pod pod -o yaml
      get job from -o yaml
      describe deployment web
      describe job from
      describe cronjob cj
      describe pdb pdb
      describe role r
      describe secret s
      describe sa sa
      describe pod pod
      describe hpa web
    `,
  },
  {
    name: "applies on the client",
    isLong: true,
    commands: `
      apply -f maps.yaml
      apply -f maps.yaml
      apply -f maps-changed.yaml
      get cm one -o yaml
      apply -f maps-changed.yaml --dry-run=server
      apply -f maps.yaml --dry-run=server -o yaml
      apply -f maps.yaml --dry-run=client
      apply view-last-applied cm one
      apply set-last-applied -f maps.yaml --create-annotation
      apply -f shop.yaml
      apply -f shop-changed.yaml
      diff -f shop.yaml
      get deploy shop -o yaml
      apply -f only-one.yaml --prune -l app=shop --prune-allowlist=core/v1/ConfigMap
      get cm
      apply -f unknown-field.yaml
      apply -f unknown-kind.yaml
      apply -f invalid.yaml
      apply -f all-kinds.yaml
      apply -f all-kinds.yaml
      get -f all-kinds.yaml
      describe secret,sa,pvc,sts,ds,rs,job,cronjob,netpol,pdb,hpa,role,rolebinding,lease
      delete -f all-kinds.yaml --wait=false
    `,
  },
  {
    name: "applies on the server",
    isLong: true,
    commands: `
      apply --server-side -f maps.yaml
      apply --server-side -f maps.yaml
      apply --server-side -f maps-changed.yaml
      apply --server-side -f maps.yaml --field-manager=other
      apply --server-side -f maps.yaml --field-manager=other --force-conflicts
      get cm one -o json --show-managed-fields
      apply --server-side -f shop.yaml
      apply --server-side -f shop-changed.yaml --field-manager=b
      apply --server-side -f shop-changed.yaml --field-manager=b --force-conflicts
      diff --server-side -f shop.yaml
      diff --server-side -f shop.yaml --force-conflicts
      scale deploy shop --replicas=7
      apply --server-side -f shop.yaml
      apply --server-side -f unknown-kind.yaml
      apply --server-side -f invalid.yaml
      get deploy shop -o json --show-managed-fields
      apply -f shop.yaml
      get deploy shop -o json --show-managed-fields
      apply --server-side -f shop.yaml
      apply --server-side -f shop.yaml --dry-run=server
      get deploy shop -o json --show-managed-fields
      apply -f maps-changed.yaml
      get cm one -o json --show-managed-fields
      apply -f all-kinds.yaml --server-side
      get -f all-kinds.yaml -o json --show-managed-fields
    `,
  },
  {
    name: "changes objects",
    isLong: true,
    commands: `
      apply -f maps.yaml -f shop.yaml
      patch cm one --type=merge -p '{"data":{"a":"3"}}'
      patch cm one --type=json -p '[{"op":"replace","path":"/data/a","value":"4"}]'
      patch cm one --type=json -p '[{"op":"test","path":"/data/a","value":"x"}]'
      patch cm one --type=json -p '[{"op":"remove","path":"/data/zz"}]'
      patch cm one --type=merge -p '{"data":{"a":"4"}}'
      patch cm one -p '{"data":{"a":5}}'
      patch cm one -p '{"data":{"a":true}}'
      patch cm one -p '{"data":"a"}'
      patch cm one -p 'no'
      patch cm none -p '{}'
      patch deploy shop -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"example.com/web:9"}]}}}}'
      patch deploy shop -p '{"spec":{"replicas":"many"}}'
      patch deploy shop --subresource=scale --type=merge -p '{"spec":{"replicas":4}}'
      patch deploy shop --subresource=status --type=merge -p '{"status":{"replicas":4}}'
      patch deploy shop --dry-run=server -p '{"spec":{"replicas":1}}' -o yaml
      label cm one x=1
      label cm one x=2
      label cm one x=2 --overwrite
      label cm one x-
      label cm one x-
      label cm one bad=%%
      label cm --all y=1
      label cm -l app=shop z=1 --dry-run=server
      annotate cm one n=1 m=2
      annotate cm one n-
      scale deploy shop --replicas=4 --current-replicas=9
      scale deploy shop --replicas=5 --current-replicas=4
      scale deploy shop --replicas=-1
      scale cm one --replicas=1
      set image deploy/shop nope=example.com/web:3
      set env deploy/shop B=2
      set env deploy/shop --list
      set resources deploy/shop --limits=cpu=200m
      set serviceaccount deploy shop worker
      set selector service shop app=other
      edit cm one
      edit cm one
      get cm one -o yaml
      replace -f maps.yaml
      replace -f maps.yaml --force --grace-period=0
      replace -f part.yaml
      rollout pause deploy/shop
      rollout pause deploy/shop
      rollout resume deploy/shop
      rollout history deploy/shop
      rollout status deploy/shop --watch=false
      rollout undo deploy/shop
      get deploy shop -o yaml
      describe service shop
    `,
  },
  {
    name: "deletes objects",
    isLong: true,
    commands: `
      apply -f maps.yaml -f pod.yaml -f shop.yaml
      delete cm one --dry-run=server
      delete cm one --dry-run=client
      delete cm one
      delete cm one
      delete cm one --ignore-not-found
      delete cm -l app=shop
      delete cm --all
      delete cm
      delete pod box --wait=false
      get pod box
      delete pod box --timeout=1s
      delete pod box --grace-period=0 --force
      delete deploy shop --cascade=foreground --wait=false
      get deploy shop -o yaml
      delete service shop --now
      apply -f shop.yaml
      delete deploy,service -l app=shop --wait=false
      delete deploy shop --cascade=orphan --wait=false
      apply -f pod.yaml
      delete -f pod.yaml --now
      get pods
      delete nothing a
      delete cm/a secret/b
    `,
  },
  {
    name: "describes the API",
    isLong: true,
    commands: `
      api-resources --api-group=batch -o wide
      api-resources --api-group=policy -o name
      explain nothing
      explain pods.nothing
      explain cm --api-version=v2
      auth can-i create pods
      auth can-i create deployments.apps --subresource=scale
      auth can-i create nothings
      version
      get --raw /healthz
      get --raw /readyz
      get --raw /nothing
      get --raw /api/v1/nothing
      get --raw /apis/none.example.com/v1/things
      events
      get events
      top pods
      cordon none
      drain none
      taint nodes none a=b:NoSchedule
      logs none
      rollout status cm/none
    `,
  },
];
