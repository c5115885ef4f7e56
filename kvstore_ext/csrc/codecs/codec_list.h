// The methods that have a codec.
#pragma once

#include <string>
#include <vector>

#include "codecs/codec.h"

namespace kvstore_ext {

// All of them. A codec joins them by an entry in codec_list.cc.
const std::vector<CodecMethod>& CodecMethods();

// The one of this name; throws std::invalid_argument where there is none.
const CodecMethod& CodecMethodOf(const std::string& name);

}  // namespace kvstore_ext
