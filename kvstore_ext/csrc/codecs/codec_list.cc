#include "codecs/codec_list.h"

#include <stdexcept>

#include "codecs/dgc.h"
#include "codecs/half.h"
#include "codecs/one_bit.h"
#include "codecs/qsgd.h"
#include "codecs/sign_sgd.h"
#include "codecs/terngrad.h"
#include "codecs/two_bit.h"

namespace kvstore_ext {

const std::vector<CodecMethod>& CodecMethods() {
  static const std::vector<CodecMethod> methods = {
      TernGrad::Method(),  //
      Qsgd::Method(),      //
      Dgc::Method(),       //
      OneBit::Method(),    //
      SignSgd::Method(),   //
      Half::Method(),      //
      TwoBit::Method(),
  };
  return methods;
}

const CodecMethod& CodecMethodOf(const std::string& name) {
  std::string names;
  for (const CodecMethod& method : CodecMethods()) {
    if (name == method.name) return method;
    names += std::string(names.empty() ? "" : ", ") + method.name;
  }
  throw std::invalid_argument("there is no compression '" + name + "'; there are " + names);
}

}  // namespace kvstore_ext
