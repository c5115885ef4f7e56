// Elements of models' parameters, layer by layer.
#pragma once

#include <cstdint>
#include <vector>

namespace kvstore_ext {

// ResNet-50's 25,557,032.
inline std::vector<uint64_t> ResNet50() {
  std::vector<uint64_t> sizes = {64 * 3 * 7 * 7, 64, 64};
  const auto add = [&sizes](uint64_t weights, uint64_t outputs) {
    sizes.insert(sizes.end(), {weights, outputs, outputs});  // with batch normalisation's two
  };
  struct Stage {
    int blocks;
    uint64_t width;
  };
  uint64_t channels = 64;
  for (const auto [blocks, width] : {Stage{3, 64}, Stage{4, 128}, Stage{6, 256}, Stage{3, 512}}) {
    for (int block = 0; block < blocks; ++block) {
      add(channels * width, width);
      add(width * width * 9, width);
      add(width * width * 4, width * 4);
      if (block == 0) add(channels * width * 4, width * 4);
      channels = width * 4;
    }
  }
  sizes.insert(sizes.end(), {2048 * 1000, 1000});
  return sizes;
}

// VGG-19's 143,667,240.
inline std::vector<uint64_t> Vgg19() {
  std::vector<uint64_t> sizes;
  uint64_t channels = 3;
  for (const uint64_t width :
       {64, 64, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512, 512, 512, 512, 512}) {
    sizes.insert(sizes.end(), {channels * width * 9, width});
    channels = width;
  }
  const uint64_t widths[] = {25088, 4096, 4096, 1000};
  for (int i = 0; i < 3; ++i) sizes.insert(sizes.end(), {widths[i] * widths[i + 1], widths[i + 1]});
  return sizes;
}

}  // namespace kvstore_ext
