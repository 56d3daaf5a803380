#pragma once
// What ranks say to each other. A model calls it wherever ranks share work; alone, the calls cost
// nothing.
#include <cstdint>
#include <memory>

#include "device/device.h"

namespace octet {

// One rank's end of a group. Every rank makes the same calls in the same order. Buffers are device
// memory, float32.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // data = the sum of every rank's data, element by element; the order of the sum is the order of
  // ranks.
  virtual void all_reduce_sum(float* data, int64_t count, Stream& stream) = 0;
  // dst[r * count, (r + 1) * count) = rank r's src, for rows that every rank holds a column share
  // of: dst is [rows, size * count], src is [rows, count].
  virtual void all_gather(const float* src, float* dst, int64_t rows, int64_t count,
                          Stream& stream) = 0;
  // data = the root's data.
  virtual void broadcast(float* data, int64_t count, int root, Stream& stream) = 0;
  // Returns when every rank has come here.
  virtual void barrier() = 0;
};

// A group of one. all_gather with src == dst does nothing.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace octet
