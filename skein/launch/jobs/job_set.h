// The JobSet with which Kubernetes runs a configuration: one pod a node, each `skein train`, the
// supervisor of its machine.
//
// What ends a pod, and what follows:
//   0       the JobSet is done when all pods are; where some nodes may be missing, `min_nodes`
//   2       a mistake: the JobSet has failed
//   75      it saved because of SIGTERM: another pod takes its place, which counts for nothing
//   others  all pods are started again, up to `retries` times; an eviction, a preemption and a lost
//           node count for nothing
// Pods meet in the run folder, which lies on a volume that all of them mount.
//
// Errors  kUsage for names that Kubernetes would refuse
// Source  jobset.x-k8s.io/v1alpha2; batch/v1 Job with podFailurePolicy and successPolicy
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/text/json.h"

namespace skein {

struct JobSetRun {
  struct Volume {
    std::string claim, mount;  // a PersistentVolumeClaim, and where pods see it
  };

  std::string name;
  std::string space;  // its namespace; empty: the current one
  std::string image;
  std::string program = "skein";  // in the image
  int64_t min_nodes = 1, max_nodes = 1;
  int64_t cpus_per_node = 1;
  int64_t gpus_per_node = 0;
  std::vector<std::pair<std::string, std::string>> resources;  // further ones: name and quantity
  std::vector<Volume> volumes;
  std::string shared_memory;  // the most that /dev/shm holds, such as "8Gi"; empty: no such limit
  int64_t grace_s = 120;
  int64_t retries = 3;
  std::string config;  // the text of config.toml
  std::string model;   // of model.json beside it; empty: none
};

// A name for the JobSet from that of a run: at most 40 lower-case letters, digits and '-'.
std::string job_set_name(const std::string& run);

// "CLAIM:/MOUNT"
JobSetRun::Volume parse_volume(const std::string& text);

// A List of Kubernetes in JSON: a ConfigMap with the configuration, and the JobSet.
std::string job_set_manifest(const JobSetRun& run);

}  // namespace skein
