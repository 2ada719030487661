"""Parts of the plugin DynamicResources: claims and slices as the scheduler sees them, and what it writes."""
