"""Find passages in any topic. Knows neither the kinds of topics nor the network."""
