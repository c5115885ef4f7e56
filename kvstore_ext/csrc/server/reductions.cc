#include "server/broadcast.h"
#include "server/coded_sum.h"
#include "server/plain_sum.h"

namespace kvstore_ext {

std::unique_ptr<Reduction> MakeReduction(SliceContext context) {
  const std::string method = context.declaration.method_name();
  if (method.empty() || method == kSkipping) return std::make_unique<PlainSum>(std::move(context));
  if (method == kBroadcast) return std::make_unique<Broadcast>(std::move(context));
  return std::make_unique<CodedSum>(std::move(context));
}

}  // namespace kvstore_ext
