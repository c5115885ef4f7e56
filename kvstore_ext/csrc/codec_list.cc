#include "codec_list.h"

#include <stdexcept>

#include "dgc.h"
#include "half.h"
#include "one_bit.h"
#include "qsgd.h"
#include "sign_sgd.h"
#include "terngrad.h"
#include "two_bit.h"

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
