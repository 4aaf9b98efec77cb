"""What commands share: options, output, questions, progress, the configuration that they edit."""
