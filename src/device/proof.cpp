#include "device/proof.h"

namespace octet {

std::string_view proof_of(DeviceKind kind, Features needs) {
  switch (kind) {
    case DeviceKind::Cpu:
      return "run on CPUs that have what it needs";
    case DeviceKind::OpenCl:
      if (needs.has(Feature::ClDpas16))
        return "compiled for Xe-HPC, never for Xe2, not run on a GPU; run on CPUs with an emulated "
               "matrix engine";
      if (needs.has(Feature::ClDpas8))
        return "compiled for Xe-HPG, not run on a GPU; run on CPUs with an emulated matrix engine";
      return "compiled for Xe-LP, Xe-HPG and Xe-HPC, never for Xe2, not run on a GPU; run on CPUs";
    case DeviceKind::Emulated:
      return "run in tests";
    case DeviceKind::Cuda:
      return "not run";
  }
  return "not run";
}

}  // namespace octet
