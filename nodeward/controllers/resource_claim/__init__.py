"""The ResourceClaim controller: claims from templates, and claims that are released when nobody uses them."""
